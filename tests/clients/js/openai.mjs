// The `openai` package for JS against real servers: starter models at REAL_URL, a script at SCRIPTED_URL.
// Run by tests/clients/test_js.py. Invariant: one test for each thing that a client of this package does.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import OpenAI, { APIError, BadRequestError, NotFoundError } from 'openai'
import { zodResponseFormat } from 'openai/helpers/zod'
import { z } from 'zod'

const CHAT = 'smollm2:135m'
const EMBEDDING = 'all-minilm:l6-v2'
const HELLO = [{ role: 'user', content: 'Say hello.' }]
const WEATHER = {
  type: 'function',
  function: {
    name: 'get_weather',
    description: 'Tell the weather of a city.',
    parameters: {
      type: 'object',
      properties: { city: { type: 'string', maxLength: 24 } },
      required: ['city'],
      additionalProperties: false,
    },
  },
}
const Pet = z.object({ name: z.string().max(12), kind: z.enum(['cat', 'dog']), age: z.number().int().min(0).max(20) })

const client = new OpenAI({ baseURL: `${process.env.REAL_URL}/v1`, apiKey: 'any', maxRetries: 0 })
const scripted = new OpenAI({ baseURL: `${process.env.SCRIPTED_URL}/v1`, apiKey: 'any', maxRetries: 0 })

const dot = (one, other) => one.reduce((sum, number, index) => sum + number * other[index], 0)

async function all(stream) {
  const items = []
  for await (const item of stream) items.push(item)
  return items
}

test('it lists the models and finds each', async () => {
  const models = (await all(client.models.list())).map((model) => model.id)
  assert.deepEqual(models.sort(), [EMBEDDING, CHAT])
  for (const name of models) assert.equal((await client.models.retrieve(name)).id, name)
})

test('a stream folds into the whole answer', async () => {
  const asked = { model: CHAT, messages: HELLO, max_tokens: 8, temperature: 0, seed: 1 }
  const whole = await client.chat.completions.create(asked)
  assert.equal(whole.usage.completion_tokens, 8)
  const chunks = await all(
    await client.chat.completions.create({ ...asked, stream: true, stream_options: { include_usage: true } }),
  )
  const text = chunks.map((chunk) => chunk.choices[0]?.delta.content ?? '').join('')
  assert.equal(text, whole.choices[0].message.content)
  assert.equal(chunks.at(-1).usage.completion_tokens, 8)
  assert.equal(chunks.at(-2).choices[0].finish_reason, 'length')
})

test('a forced tool is called, streamed or not, and its result goes back', async () => {
  const messages = [{ role: 'user', content: 'What is the weather in Paris?' }]
  const asked = { model: CHAT, messages, tools: [WEATHER], tool_choice: 'required', temperature: 0 }
  const whole = await client.chat.completions.create(asked)
  const folded = await client.chat.completions.stream(asked).finalChatCompletion()
  for (const answer of [whole, folded]) {
    const { message, finish_reason: reason } = answer.choices[0]
    assert.equal(reason, 'tool_calls')
    assert.equal(message.tool_calls.length, 1)
    assert.equal(message.tool_calls[0].function.name, 'get_weather')
    assert.deepEqual(Object.keys(JSON.parse(message.tool_calls[0].function.arguments)), ['city'])
  }
  const { message } = whole.choices[0]
  messages.push(message, { role: 'tool', tool_call_id: message.tool_calls[0].id, content: 'Sunny.' })
  const answer = await client.chat.completions.create({ model: CHAT, messages, max_tokens: 8 })
  assert.ok(answer.choices[0].message.content)
})

test('its own loop runs the tools that the model calls', async () => {
  const asked = []
  const runner = scripted.chat.completions.runTools(
    {
      model: 'scripted',
      messages: [{ role: 'user', content: 'weather' }],
      tools: [
        {
          type: 'function',
          function: { ...WEATHER.function, parse: JSON.parse, function: ({ city }) => asked.push(city) && 'Sunny.' },
        },
      ],
    },
    { maxChatCompletions: 2 },
  )
  await runner.done().catch(() => undefined) // The script calls again and again; two rounds are enough.
  assert.deepEqual(asked.slice(0, 1), ['Brno'])
  assert.ok(runner.messages.some((message) => message.role === 'tool' && message.content === 'Sunny.'))
})

test('several calls come apart in a stream, with text before them', async () => {
  const ask = (content) => ({ model: 'scripted', messages: [{ role: 'user', content }], tools: [WEATHER] })
  const two = await scripted.chat.completions.stream(ask('two')).finalMessage()
  assert.deepEqual(
    two.tool_calls.map((call) => JSON.parse(call.function.arguments).city),
    ['Brno', 'Oslo'],
  )
  assert.equal(new Set(two.tool_calls.map((call) => call.id)).size, 2)
  const one = await scripted.chat.completions.stream(ask('weather')).finalMessage()
  assert.equal(one.content, 'Let me look.')
  assert.equal(one.tool_calls.length, 1)
})

test('a schema is kept and parsed', async () => {
  const answer = await client.chat.completions.parse({
    model: CHAT,
    messages: [{ role: 'user', content: 'Make up a pet.' }],
    response_format: zodResponseFormat(Pet, 'pet'),
    temperature: 0,
  })
  assert.deepEqual(Pet.parse(answer.choices[0].message.parsed), answer.choices[0].message.parsed)
})

test('logprobs belong to the tokens of the answer', async () => {
  const asked = { model: CHAT, messages: HELLO, max_tokens: 5, logprobs: true, top_logprobs: 2, temperature: 0 }
  const [{ logprobs, message }] = (await client.chat.completions.create(asked)).choices
  assert.equal(logprobs.content.map((each) => each.token).join(''), message.content)
  assert.ok(logprobs.content.every((each) => each.top_logprobs.length === 2))
})

test('a stop word ends the answer and is not said', async () => {
  const asked = { model: CHAT, messages: HELLO, max_tokens: 24, temperature: 0 }
  const text = (await client.chat.completions.create(asked)).choices[0].message.content
  const stop = text.slice(3, 7)
  const answer = await client.chat.completions.create({ ...asked, stop: [stop] })
  assert.equal(answer.choices[0].message.content, text.slice(0, text.indexOf(stop)))
  assert.equal(answer.choices[0].finish_reason, 'stop')
})

test('choices are several, and a seed repeats them', async () => {
  const asked = { model: CHAT, messages: HELLO, max_tokens: 8, temperature: 1.5, seed: 7, n: 2 }
  const [first, second] = [await client.chat.completions.create(asked), await client.chat.completions.create(asked)]
  const texts = (answer) => answer.choices.map((choice) => choice.message.content)
  assert.equal(texts(first).length, 2)
  assert.deepEqual(texts(first), texts(second))
})

test('it completes text', async () => {
  const answer = await client.completions.create({ model: CHAT, prompt: 'Once upon a', max_tokens: 4 })
  assert.ok(answer.choices[0].text)
})

test('it embeds one and many, in base64 by itself and in numbers', async () => {
  const texts = ['A cat sleeps.', 'Stocks fell sharply.', 'A kitten naps.']
  const many = await client.embeddings.create({ model: EMBEDDING, input: texts })
  const vectors = many.data.map((each) => each.embedding)
  assert.deepEqual([...new Set(vectors.map((vector) => vector.length))], [384])
  assert.ok(dot(vectors[0], vectors[2]) > dot(vectors[0], vectors[1]))
  const one = await client.embeddings.create({ model: EMBEDDING, input: texts[0], encoding_format: 'float' })
  assert.ok(dot(one.data[0].embedding, vectors[0]) > 0.999)
})

test('what is not there is not found, and what is wrong names its field', async () => {
  const nowhere = { model: 'nowhere:7b', messages: HELLO }
  const isNotFound = (error) => error instanceof NotFoundError && error.message.includes('nowhere:7b')
  await assert.rejects(client.chat.completions.create(nowhere), isNotFound)
  await assert.rejects(client.chat.completions.create({ ...nowhere, stream: true }), isNotFound)
  await assert.rejects(client.models.retrieve('nowhere:7b'), isNotFound)
  await assert.rejects(
    client.chat.completions.create({ model: CHAT, messages: HELLO, temperature: 'hot' }),
    (error) => error instanceof BadRequestError && error.param === 'temperature',
  )
})

test('a stream that breaks throws', async () => {
  const asked = { model: 'scripted', messages: [{ role: 'user', content: 'break' }], stream: true }
  const stream = await scripted.chat.completions.create(asked)
  await assert.rejects(all(stream), (error) => error instanceof APIError && /engine failed/.test(error.message))
})

test('a stream that is given up leaves the server free', async () => {
  const asked = { model: CHAT, messages: [{ role: 'user', content: 'Tell me a long story.' }], stream: true }
  for (let round = 0; round < 6; round += 1) {
    for await (const chunk of await client.chat.completions.create(asked)) if (chunk.choices[0].delta.content) break
  }
  assert.ok(await client.chat.completions.create({ model: CHAT, messages: HELLO, max_tokens: 1 }))
})

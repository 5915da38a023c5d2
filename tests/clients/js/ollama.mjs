// The `ollama` package for JS against real servers: starter models at REAL_URL, a script at SCRIPTED_URL.
// Run by tests/clients/test_js.py. Invariant: one test for each thing that a client of this package does.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Ollama } from 'ollama'

const CHAT = 'smollm2:135m'
const EMBEDDING = 'all-minilm:l6-v2'
const HELLO = [{ role: 'user', content: 'Say hello.' }]
const SHORT = { temperature: 0, num_predict: 8 }
const WEATHER = {
  type: 'function',
  function: {
    name: 'get_weather',
    description: 'Tell the weather of a city.',
    parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  },
}
// The protocol cannot force a call, but the small model can be made to write one.
const ECHOED = `Say this again, word for word, and nothing else:
<tool_call>
{"name": "get_weather", "arguments": {"city": "Paris"}}
</tool_call>`
const PET = {
  type: 'object',
  properties: { name: { type: 'string', maxLength: 12 }, age: { type: 'integer', minimum: 0, maximum: 20 } },
  required: ['name', 'age'],
}

const client = new Ollama({ host: process.env.REAL_URL })
const scripted = new Ollama({ host: process.env.SCRIPTED_URL })

async function all(stream) {
  const items = []
  for await (const item of await stream) items.push(item)
  return items
}

test('it lists and shows the models and tells its version', async () => {
  const { models } = await client.list()
  assert.deepEqual(models.map((model) => model.name).sort(), [EMBEDDING, CHAT])
  const shown = await client.show({ model: CHAT })
  assert.equal(shown.model_info['general.architecture'], 'llama')
  assert.deepEqual(shown.capabilities, ['completion', 'tools'])
  assert.match((await client.version()).version, /^\d+\.\d+\.\d+$/)
})

test('it loads, tells what is loaded, and unloads', async () => {
  const loaded = await client.generate({ model: CHAT, prompt: '', keep_alive: '10m' })
  assert.deepEqual([loaded.done_reason, loaded.response], ['load', ''])
  const running = (await client.ps()).models.find((model) => model.name === CHAT)
  assert.equal(running.context_length, 2048)
  assert.ok(new Date(running.expires_at) > new Date())
  assert.equal((await client.generate({ model: CHAT, prompt: '', keep_alive: 0 })).done_reason, 'unload')
  assert.ok((await client.ps()).models.every((model) => model.name !== CHAT))
})

test('a stream adds up to the whole answer', async () => {
  const whole = await client.chat({ model: CHAT, messages: HELLO, options: SHORT })
  assert.equal(whole.eval_count, 8)
  assert.equal(whole.done_reason, 'length')
  const lines = await all(client.chat({ model: CHAT, messages: HELLO, options: SHORT, stream: true }))
  assert.equal(lines.map((line) => line.message.content).join(''), whole.message.content)
  assert.ok(lines.at(-1).done)
})

test('it generates, streamed or not', async () => {
  const whole = await client.generate({ model: CHAT, prompt: 'Say hello.', options: SHORT })
  const lines = await all(client.generate({ model: CHAT, prompt: 'Say hello.', options: SHORT, stream: true }))
  assert.equal(lines.map((line) => line.response).join(''), whole.response)
  assert.ok(whole.context.length > 8)
})

test('a tool is called, streamed or not, and its result goes back', async () => {
  const messages = [{ role: 'user', content: ECHOED }]
  const asked = { model: CHAT, messages, tools: [WEATHER], options: { temperature: 0, num_predict: 60 } }
  const whole = await client.chat(asked)
  const lines = await all(client.chat({ ...asked, stream: true }))
  for (const calls of [whole.message.tool_calls, lines.flatMap((line) => line.message.tool_calls ?? [])]) {
    assert.equal(calls.length, 1)
    assert.deepEqual(calls[0].function.arguments, { city: 'Paris' })
  }
  messages.push(whole.message, { role: 'tool', tool_name: 'get_weather', content: 'Sunny.' })
  assert.ok((await client.chat({ model: CHAT, messages, options: SHORT })).message.content)
})

test('several calls come apart', async () => {
  const lines = await all(
    scripted.chat({ model: 'scripted', messages: [{ role: 'user', content: 'two' }], tools: [WEATHER], stream: true }),
  )
  const calls = lines.flatMap((line) => line.message.tool_calls ?? [])
  assert.deepEqual(
    calls.map((call) => call.function.arguments.city),
    ['Brno', 'Oslo'],
  )
})

test('thinking comes apart', async () => {
  const asked = { model: 'scripted', messages: [{ role: 'user', content: 'think' }], think: true }
  const { message } = await scripted.chat(asked)
  assert.deepEqual([message.thinking, message.content], ['Let me see.', 'It is 42.'])
})

test('a schema is kept', async () => {
  const asked = { model: CHAT, messages: [{ role: 'user', content: 'Make up a pet.' }], format: PET }
  const pet = JSON.parse((await client.chat({ ...asked, options: { temperature: 0 } })).message.content)
  assert.equal(typeof pet.name, 'string')
  assert.ok(Number.isInteger(pet.age))
})

test('a stop word ends the answer, and a seed repeats one', async () => {
  const asked = { model: CHAT, messages: HELLO }
  const options = { temperature: 0, num_predict: 24 }
  const text = (await client.chat({ ...asked, options })).message.content
  const stop = text.slice(3, 7)
  const { message } = await client.chat({ ...asked, options: { ...options, stop: [stop] } })
  assert.equal(message.content, text.slice(0, text.indexOf(stop)))
  const hot = { ...asked, options: { temperature: 1.5, num_predict: 12, seed: 7 } }
  assert.equal((await client.chat(hot)).message.content, (await client.chat(hot)).message.content)
})

test('it embeds one and many', async () => {
  const many = await client.embed({ model: EMBEDDING, input: ['A cat sleeps.', 'Stocks fell.'] })
  assert.deepEqual(
    many.embeddings.map((vector) => vector.length),
    [384, 384],
  )
  assert.equal((await client.embed({ model: EMBEDDING, input: 'A cat sleeps.' })).embeddings.length, 1)
  assert.equal((await client.embeddings({ model: EMBEDDING, prompt: 'A cat sleeps.' })).embedding.length, 384)
})

test('what is not there is 404 by its name', async () => {
  const isNotFound = (error) => error.status_code === 404 && /nowhere:7b.*not found/.test(error.message)
  await assert.rejects(client.chat({ model: 'nowhere:7b', messages: HELLO }), isNotFound)
  await assert.rejects(client.chat({ model: 'nowhere:7b', messages: HELLO, stream: true }), isNotFound)
  await assert.rejects(client.embed({ model: 'nowhere:7b', input: 'x' }), isNotFound)
  await assert.rejects(client.show({ model: 'nowhere:7b' }), isNotFound)
})

test('a stream that breaks throws', async () => {
  const asked = { model: 'scripted', messages: [{ role: 'user', content: 'break' }], stream: true }
  await assert.rejects(all(scripted.chat(asked)), /engine failed/)
})

test('a stream that is aborted leaves the server free', async () => {
  for (let round = 0; round < 6; round += 1) {
    const own = new Ollama({ host: process.env.REAL_URL })
    const stream = await own.chat({ model: CHAT, messages: [{ role: 'user', content: 'A long story.' }], stream: true })
    await assert.rejects(async () => {
      for await (const line of stream) if (line.message.content) own.abort()
    }, /abort/i)
  }
  assert.ok(await client.chat({ model: CHAT, messages: HELLO, options: { num_predict: 1 } }))
})

// The `openai` package's Responses for JS, against a server that says what stands in a script, at SCRIPTED_URL.
// Run by tests/clients/test_responses_js.py. Invariant: one test for each thing that a client of this package does.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import OpenAI, { APIError, NotFoundError } from 'openai'
import { zodTextFormat } from 'openai/helpers/zod'
import { z } from 'zod'

const MODEL = 'scripted'
const TOOL = {
  type: 'function',
  name: 'get_weather',
  parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  strict: false,
}
const Pet = z.object({ name: z.string().max(12), kind: z.enum(['cat', 'dog']) })
const client = new OpenAI({ baseURL: `${process.env.SCRIPTED_URL}/v1`, apiKey: 'any', maxRetries: 0 })
const create = (fields) => client.responses.create({ model: MODEL, ...fields })

test('a stream helper gives the events and the whole', async () => {
  const stream = client.responses.stream({ model: MODEL, input: 'the weather', tools: [TOOL] })
  const kinds = []
  for await (const event of stream) kinds.push(event.type)
  const final = await stream.finalResponse()
  assert.deepEqual(kinds.slice(0, 2), ['response.created', 'response.in_progress'])
  assert.equal(kinds.at(-1), 'response.completed')
  assert.equal(final.output_text, 'Let me look.')
  const call = final.output.find((item) => item.type === 'function_call')
  assert.deepEqual(JSON.parse(call.arguments), { city: 'Brno' })
})

test('an answer is parsed into a type, whole and streamed', async () => {
  const asked = { model: MODEL, input: 'a pet', text: { format: zodTextFormat(Pet, 'pet') } }
  const whole = await client.responses.parse(asked)
  const streamed = await client.responses.stream(asked).finalResponse()
  for (const response of [whole, streamed]) assert.equal(response.output_parsed.kind, 'cat')
})

test('a conversation goes on by its id until it is deleted', async () => {
  const first = await create({ input: 'banana' })
  const second = await create({ input: 'and', previous_response_id: first.id })
  assert.ok(second.usage.input_tokens > first.usage.total_tokens)
  const sent = []
  for await (const item of client.responses.inputItems.list(first.id)) sent.push(item.content[0].text)
  assert.deepEqual(sent, ['banana'])
  await client.responses.delete(first.id)
  await assert.rejects(client.responses.retrieve(first.id), NotFoundError)
})

test('what goes on in the background is fetched, and stopped', async () => {
  const begun = await create({ input: 'later', background: true })
  let now = begun
  const until = Date.now() + 20_000
  while (['queued', 'in_progress'].includes(now.status) && Date.now() < until) {
    now = await client.responses.retrieve(begun.id)
  }
  assert.equal(now.status, 'completed')
  assert.equal(now.output_text, 'later')
  const endless = await create({ input: 'without end', background: true })
  assert.equal((await client.responses.cancel(endless.id)).status, 'cancelled')
  assert.equal((await client.responses.retrieve(endless.id)).status, 'cancelled')
})

test('a conversation is compacted and goes on', async () => {
  const history = [
    { role: 'user', content: 'banana' },
    { role: 'assistant', content: 'Yes.' },
  ]
  const folded = await client.responses.compact({ model: MODEL, input: history })
  assert.deepEqual(
    folded.output.map((item) => item.type),
    ['message', 'compaction'],
  )
  const answer = await create({ input: [...folded.output, { role: 'user', content: 'go on' }] })
  assert.equal(answer.output_text, 'go on')
  const triggered = { model: MODEL, input: [...history, { type: 'compaction_trigger' }] }
  const { output } = await client.responses.stream(triggered).finalResponse()
  assert.deepEqual(
    output.map((item) => item.type),
    ['compaction'],
  )
})

test('tokens are counted before they are spent', async () => {
  const { input_tokens: counted } = await client.responses.inputTokens.count({ model: MODEL, input: 'hello' })
  assert.equal(counted, (await create({ input: 'hello' })).usage.input_tokens)
})

test('an answer that breaks is an error of the stream, and its response has failed', async () => {
  const kinds = []
  let id
  const stream = await create({ input: 'break off', stream: true })
  for await (const event of stream) {
    kinds.push(event.type)
    id = event.response?.id ?? id
  }
  assert.equal(kinds.at(-1), 'response.failed')
  assert.equal((await client.responses.retrieve(id)).status, 'failed')
  await assert.rejects(create({ input: 'x', max_output_tokens: 0 }), (error) => error instanceof APIError && error.status === 400)
})

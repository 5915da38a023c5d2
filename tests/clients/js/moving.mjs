// The `ollama` package for JS moves models: a scripted server at SERVED_URL, a registry at REGISTRY_HOST that offers
// `library/tiny:1`. Run by tests/clients/test_js_models.py.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Ollama } from 'ollama'

const client = new Ollama({ host: process.env.SERVED_URL })
const TINY = `${process.env.REGISTRY_HOST}/library/tiny:1`
const COPY = `${process.env.REGISTRY_HOST}/me/js:1`

const all = async (stream) => {
  const seen = []
  for await (const each of await stream) seen.push(each.status)
  return seen
}

test('it pulls, streamed and not', async () => {
  const steps = await all(client.pull({ model: TINY, insecure: true, stream: true }))
  assert.equal(steps[0], 'pulling manifest')
  assert.equal(steps.at(-1), 'success')
  assert.equal((await client.pull({ model: TINY, insecure: true })).status, 'success')
})

test('it copies, pushes and deletes', async () => {
  assert.equal((await client.copy({ source: TINY, destination: COPY })).status, 'success')
  assert.equal((await all(client.push({ model: COPY, insecure: true, stream: true }))).at(-1), 'success')
  assert.equal((await client.push({ model: COPY, insecure: true })).status, 'success')
  assert.equal((await client.delete({ model: COPY })).status, 'success')
  await assert.rejects(client.delete({ model: COPY }), (error) => error.status_code === 404)
})

test('what is not there is an error', async () => {
  const none = { model: `${process.env.REGISTRY_HOST}/me/none`, insecure: true }
  await assert.rejects(client.pull(none), /file does not exist/)
  await assert.rejects(all(client.pull({ ...none, stream: true })), /file does not exist/)
})

test('a pull that is aborted leaves the server as it was', async () => {
  const own = new Ollama({ host: process.env.SERVED_URL })
  const stream = await own.pull({ model: TINY, insecure: true, stream: true })
  await assert.rejects(async () => {
    for await (const step of stream) if (step.status) own.abort()
  }, /abort/i)
  assert.equal((await client.pull({ model: TINY, insecure: true })).status, 'success')
})

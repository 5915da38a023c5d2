// Every public method of the `ollama` package for JS, read off the package, against a scripted server at SERVED_URL; TINY
// is a model of a registry at HOST. Run by tests/clients/test_ollama_methods.py. A method that a new version brings
// fails here until it is covered.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Ollama } from 'ollama'

const client = new Ollama({ host: process.env.SERVED_URL })
const TINY = process.env.TINY
const COPY = `${process.env.HOST}/me/js:2`
const messages = [{ role: 'user', content: 'hello' }]

async function all(stream) {
  const items = []
  for await (const item of await stream) items.push(item)
  return items
}

const isProgress = (line) => typeof line.status === 'string'

// Calls in an order in which each finds what it needs; each says whether what came is of the declared form.
const calls = {
  async version() {
    return typeof (await client.version()).version === 'string'
  },
  async chat() {
    const lines = await all(client.chat({ model: 'scripted', messages, stream: true }))
    const whole = await client.chat({ model: 'scripted', messages })
    return lines.at(-1).done && whole.message.content === lines.map((line) => line.message.content).join('')
  },
  async generate() {
    const lines = await all(client.generate({ model: 'scripted', prompt: 'hello', stream: true }))
    const whole = await client.generate({ model: 'scripted', prompt: 'hello' })
    return lines.at(-1).done && whole.response === lines.map((line) => line.response).join('')
  },
  async embed() {
    return (await client.embed({ model: 'scripted-embed', input: ['one', 'two'] })).embeddings.length === 2
  },
  async embeddings() {
    return (await client.embeddings({ model: 'scripted-embed', prompt: 'one' })).embedding.length > 0
  },
  async encodeImage() {
    return (await client.encodeImage(new Uint8Array([1, 2, 3]))) === 'AQID'
  },
  async fileExists() {
    return client.fileExists(new URL(import.meta.url).pathname)
  },
  async pull() {
    const lines = await all(client.pull({ model: TINY, insecure: true, stream: true }))
    return lines.every(isProgress) && (await client.pull({ model: TINY, insecure: true })).status === 'success'
  },
  async list() {
    return (await client.list()).models.some((model) => model.name === TINY && model.modified_at && model.digest)
  },
  async ps() {
    return Array.isArray((await client.ps()).models)
  },
  async show() {
    const shown = await client.show({ model: TINY })
    return shown.model_info['general.architecture'] === 'llama' && shown.capabilities.includes('completion')
  },
  async create() {
    const lines = await all(client.create({ model: 'js-made', from: TINY, system: 'Be brief.', stream: true }))
    return lines.every(isProgress) && (await client.create({ model: 'js-made', from: TINY })).status === 'success'
  },
  async copy() {
    return (await client.copy({ source: TINY, destination: COPY })).status === 'success'
  },
  async push() {
    const lines = await all(client.push({ model: COPY, insecure: true, stream: true }))
    return lines.every(isProgress) && (await client.push({ model: COPY, insecure: true })).status === 'success'
  },
  async delete() {
    return (await client.delete({ model: COPY })).status === 'success'
  },
  async abort() {
    const own = new Ollama({ host: process.env.SERVED_URL })
    const stream = await own.chat({ model: 'scripted', messages, stream: true })
    own.abort()
    await assert.rejects(all(stream), /abort/i)
    return true
  },
  async systemone() {
    // It asks a model of a kind of its own for decisions; there is no such model here.
    const questions = { angry: { type: 'noul', instructions: 'Is the customer angry?' } }
    const asked = { model: 'scripted', state: 'I want my money back.', questions }
    await assert.rejects(client.systemone(asked), (error) => error.status_code === 404)
    return true
  },
}
// These go to ollama.com, whatever the client's host is; the other is what requests are made with.
const elsewhere = ['webFetch', 'webSearch', 'processStreamableRequest']

function methods() {
  const names = new Set()
  for (let each = Ollama.prototype; each !== Object.prototype; each = Object.getPrototypeOf(each)) {
    for (const name of Object.getOwnPropertyNames(each)) if (name !== 'constructor') names.add(name)
  }
  return names
}

test('no method is left out', () => {
  assert.deepEqual([...methods()].sort(), [...Object.keys(calls), ...elsewhere].sort())
})

for (const [name, call] of Object.entries(calls)) {
  test(`${name} answers in its own form`, async () => {
    assert.ok(await call())
  })
}

// The `ollama` package for JS makes models on a real server.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Ollama } from "ollama";

const ollama = new Ollama({ host: process.env.MAKING_URL });
const base = process.env.MAKING_BASE;

test("a model is made of another", async () => {
  const made = await ollama.create({ model: "js-made", from: base, system: "Be brief.", parameters: { num_predict: 3 } });
  assert.equal(made.status, "success");
  const shown = await ollama.show({ model: "js-made" });
  assert.equal(shown.system, "Be brief.");
  assert.match(shown.parameters, /num_predict +3/);
  assert.equal(shown.details.parent_model, base);
});

test("its steps are streamed and end in success", async () => {
  const statuses = [];
  for await (const part of await ollama.create({ model: "js-made", from: base, license: "MIT", stream: true })) {
    statuses.push(part.status);
  }
  assert.match(statuses[0], /^using existing layer sha256:/);
  assert.deepEqual(statuses.slice(-2), ["writing manifest", "success"]);
});

test("what cannot be made is an error with its field", async () => {
  await assert.rejects(
    ollama.create({ model: "js-made", from: base, parameters: { warmth: 1 } }),
    /parameters.warmth: there is no parameter/,
  );
});

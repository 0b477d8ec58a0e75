import assert from "node:assert/strict";
import { cp, mkdtemp, readFile, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { test, type TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { openOriginal } from "../../../src/engine/language/open-original.ts";
import { readConfig } from "../../../src/engine/language/read-config.ts";

const checkpoints = fileURLToPath(new URL("checkpoints", import.meta.url));

/** A copy of a recorded checkpoint, with other fields in its configuration. */
async function copyOf(t: TestContext, family: string, fields: object = {}): Promise<string> {
  const folder = await mkdtemp(path.join(tmpdir(), "checkpoint-"));
  t.after(() => rm(folder, { recursive: true }));
  await cp(path.join(checkpoints, family), folder, { recursive: true });
  const file = path.join(folder, "config.json");
  const config = { ...JSON.parse(await readFile(file, "utf8")), ...fields };
  await writeFile(file, JSON.stringify(config));
  return file;
}

const refusals: readonly [what: string, family: string, fields: object, message: RegExp][] = [
  [
    "an architecture that is not known",
    "llama",
    { model_type: "mamba" },
    /^config\.json: model_type "mamba" is not known; the known ones are llama, mistral, qwen2, .*gemma3_text$/,
  ],
  [
    "a field that is not known",
    "llama",
    { attention_multiplier: 0.5 },
    /^config\.json: the field "attention_multiplier" is not known; the known ones are model_type, hidden_size/,
  ],
  [
    "a field of another family",
    "llama",
    { attn_logit_softcapping: 30 },
    /^config\.json: llama has no field attn_logit_softcapping$/,
  ],
  [
    "a field that has no value which all versions of transformers share",
    "mistral",
    { sliding_window: undefined },
    /^config\.json: mistral needs the field sliding_window$/,
  ],
  [
    "a number of layers beyond all models",
    "llama",
    { num_hidden_layers: 2 ** 31 },
    /^config\.json: num_hidden_layers: .*4096/,
  ],
  ["biases of attention", "llama", { attention_bias: true }, /^config\.json: attention_bias: /],
  [
    "another activation",
    "llama",
    { hidden_act: "relu" },
    /^config\.json: the activation "relu" is not known; known is silu$/,
  ],
  [
    "another kind of rotary embedding",
    "llama",
    { rope_parameters: { rope_type: "yarn", rope_theta: 1e4, factor: 4 } },
    /^config\.json: rope type "yarn" is not known; the known ones are default, linear, llama3$/,
  ],
  [
    "a kind of rotary embedding without one of its fields",
    "llama",
    { rope_parameters: { rope_type: "linear", rope_theta: 1e4 } },
    /^config\.json: rope type linear needs the field factor$/,
  ],
  [
    "a quantization that is not known",
    "llama",
    { quantization_config: { quant_method: "gptq", bits: 4 } },
    /^config\.json: quantization_config\.quant_method: /,
  ],
  [
    "heads that no number of others has keys and values for",
    "llama",
    { num_attention_heads: 3 },
    /^config\.json: num_attention_heads is 3, and may be a multiple of num_key_value_heads, 2$/,
  ],
  [
    "a size of heads that attention is not computed for",
    "llama",
    { head_dim: 40 },
    /^config\.json: head_dim is 40, and may be a multiple of 16$/,
  ],
  [
    "a size of heads that is no whole number",
    "llama",
    { head_dim: null, num_attention_heads: 6 },
    /^config\.json: hidden_size \/ num_attention_heads is 5\.33\d+, and may be a multiple of 16$/,
  ],
  [
    "a part of heads that attention does not rotate",
    "phi3",
    { rope_parameters: { rope_theta: 1e4, partial_rotary_factor: 0.4 } },
    /^config\.json: hidden_size \/ .* \* partial_rotary_factor is 6, and may be a multiple of 16$/,
  ],
  [
    "a number that float32 does not have",
    "llama",
    { rms_norm_eps: 1e300 },
    /^config\.json: rms_norm_eps: Too big: expected number to be <=3\.4\d+e\+38$/,
  ],
  [
    "kinds of attention for other layers than there are",
    "llama",
    { layer_types: ["full_attention"] },
    /^config\.json: layer_types has 1 entries, and num_hidden_layers is 2$/,
  ],
  [
    "a window whose size is missing",
    "qwen2",
    { use_sliding_window: true, sliding_window: undefined },
    /^config\.json: use_sliding_window needs the field sliding_window$/,
  ],
];

test("the first 28 layers of Qwen have no window where the configuration names no layer", async (t) => {
  const fields = { use_sliding_window: true, sliding_window: 8 };
  const unnamed = { max_window_layers: undefined, layer_types: undefined };
  const file = await copyOf(t, "qwen2", { ...fields, ...unnamed });
  assert.deepEqual(readConfig(file).windows, [0, 0]);
});

test("positions count as bytes, since rotary caches have a row for each", async (t) => {
  const file = await copyOf(t, "llama", { max_position_embeddings: 2 ** 30 });
  await assert.rejects(openOriginal(file, 1e9), { code: "model_too_large" });
});

for (const [what, family, fields, message] of refusals) {
  test(`${what} is refused by name`, async (t) => {
    const file = await copyOf(t, family, fields);
    await assert.rejects(openOriginal(file, 1e9), { code: "model_unsupported", message });
  });
}

test("a tensor of another shape is refused with its file and both shapes", async (t) => {
  const file = await copyOf(t, "llama", { intermediate_size: 32 });
  const problem = "shape [64, 32], and the configuration needs [32, 32]";
  const message = `model.safetensors: tensor "model.layers.0.mlp.gate_proj.weight": ${problem}`;
  await assert.rejects(openOriginal(file, 1e9), { code: "model_invalid", message });
});

test("a tensor that the configuration misses, or does not use, is named", async (t) => {
  const more = await copyOf(t, "llama", { num_hidden_layers: 3 });
  const missing = /^The checkpoint has no tensor "model\.layers\.2\.input_layernorm\.weight"$/;
  await assert.rejects(openOriginal(more, 1e9), { code: "model_invalid", message: missing });
  const less = await copyOf(t, "llama", { num_hidden_layers: 1 });
  const unused = /^Nothing of the configuration uses the tensor "model\.layers\.1\./;
  await assert.rejects(openOriginal(less, 1e9), { code: "model_unsupported", message: unused });
});

test("rotary embeddings of transformers 4 are the same as those of 5", async (t) => {
  const { rope_parameters: parameters } = JSON.parse(
    await readFile(path.join(checkpoints, "llama3", "config.json"), "utf8"),
  );
  const { rope_theta, ...scaling } = parameters;
  const older = { rope_parameters: undefined, rope_theta, rope_scaling: scaling };
  const [own, other] = [await copyOf(t, "llama3"), await copyOf(t, "llama3", older)];
  const caches = async (file: string) =>
    (await openOriginal(file, 1e9)).payloads.flatMap((payload) =>
      payload.kind === "checkpoint" ? payload.pieces.filter(({ kind }) => kind === "rotary") : [],
    );
  assert.deepEqual(await caches(other), await caches(own));
  assert.equal((await caches(own)).length, 2);
});

const index = (files: Record<string, string>) =>
  JSON.stringify({ metadata: {}, weight_map: files });

test("a shard that is missing, or holds what the index does not say, is named", async (t) => {
  const file = await copyOf(t, "llama");
  const folder = path.dirname(file);
  const indexFile = path.join(folder, "model.safetensors.index.json");
  await writeFile(indexFile, index({ "model.norm.weight": "model-00001-of-00001.safetensors" }));
  const missing =
    "model.safetensors.index.json: it names model-00001-of-00001.safetensors, which is missing";
  await assert.rejects(openOriginal(file, 1e9), { code: "model_invalid", message: missing });
  const shard = path.join(folder, "model-00001-of-00001.safetensors");
  await rename(path.join(folder, "model.safetensors"), shard);
  const other = /tensor "lm_head\.weight": .*index\.json says that it is in no file$/;
  await assert.rejects(openOriginal(file, 1e9), { code: "model_invalid", message: other });
  await writeFile(indexFile, index({ "model.norm.weight": "../model.safetensors" }));
  await assert.rejects(openOriginal(file, 1e9), {
    code: "model_invalid",
    message: /not an index of weights/,
  });
});

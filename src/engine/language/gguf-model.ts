import { statSync } from "node:fs";
import { quoteName } from "../../contract/text/quote-name.ts";
import { type CheckpointTensor, invalidFileError } from "../checkpoints/checkpoint-tensor.ts";
import { CheckpointValues } from "../checkpoints/checkpoint-values.ts";
import { readGguf } from "../checkpoints/read-gguf.ts";
import type { RotaryScaling } from "../checkpoints/rotary-cache.ts";
import { checkAttention } from "./check-attention.ts";
import { type ArchitectureKey, MetadataReader, unsupportedError } from "./gguf-metadata.ts";
import { type DecoderFacts, type LanguageModel, maxLayers } from "./decoder-facts.ts";
import { families, type Family } from "./families.ts";

/** What differs between the GGUF files of families and their safetensors. */
interface GgufFamily {
  readonly family: Family;
  /** Whether each head's rows of queries and keys have their halves interleaved. */
  readonly isInterleaved: boolean;
}

const ggufFamilies: Readonly<Record<string, GgufFamily>> = {
  llama: { family: families.llama, isInterleaved: true },
  qwen2: { family: families.qwen2, isInterleaved: false },
  qwen3: { family: families.qwen3, isInterleaved: false },
};

/** Names of a layer's tensors in GGUF files, and in those of transformers. */
const layerNames: Readonly<Record<string, string>> = {
  attn_norm: "input_layernorm",
  attn_q: "self_attn.q_proj",
  attn_k: "self_attn.k_proj",
  attn_v: "self_attn.v_proj",
  attn_output: "self_attn.o_proj",
  attn_q_norm: "self_attn.q_norm",
  attn_k_norm: "self_attn.k_norm",
  ffn_norm: "post_attention_layernorm",
  ffn_gate: "mlp.gate_proj",
  ffn_up: "mlp.up_proj",
  ffn_down: "mlp.down_proj",
};

const otherNames: Readonly<Record<string, string>> = {
  "token_embd.weight": "model.embed_tokens.weight",
  "output_norm.weight": "model.norm.weight",
  "output.weight": "lm_head.weight",
};

/** Llama 3.1 and later have a divisor of each rotary frequency in it. */
const divisorsName = "rope_freqs.weight";

/**
 * Reads the header of a GGUF file.
 * @throws ServiceError model_invalid, model_truncated, model_unsupported for an architecture, a key
 * of it or a type of tensors that is not known
 */
export function openGgufModel(file: string): LanguageModel {
  const { metadata, tensors } = readGguf(file);
  const reader = new MetadataReader(file, metadata);
  requireOneFile(file, reader);
  const architecture = reader.text("general.architecture");
  const known = Object.hasOwn(ggufFamilies, architecture) ? ggufFamilies[architecture] : undefined;
  if (known === undefined) {
    const list = Object.keys(ggufFamilies).join(", ");
    throw unsupportedError(file, `general.architecture ${quoteName(architecture)}`, list);
  }
  reader.requireKnownKeys(architecture);
  const facts = readFacts(reader, architecture, known.family, tensors);
  checkAttention(file, facts, {
    heads: `${architecture}.attention.head_count`,
    kvHeads: `${architecture}.attention.head_count_kv`,
    headSize: `${architecture}.attention.key_length`,
    rotated: `${architecture}.rope.dimension_count`,
  });
  const weights = tensors.filter(({ name }) => name !== divisorsName);
  const named = weights.map((tensor) => {
    const name = findName(file, tensor);
    const isRotated = known.isInterleaved && /\.self_attn\.[qk]_proj\.weight$/.test(name);
    return [name, isRotated ? { ...tensor, interleavedRows: facts.headSize } : tensor] as const;
  });
  return { facts, tensors: new Map(named), bytes: statSync(file).size };
}

/** Each part of a model that was cut into several files says how many there are. */
function requireOneFile(file: string, reader: MetadataReader): void {
  const count = reader.find("split.count") ?? 0;
  if (count > 1) throw unsupportedError(file, `split.count ${count}`, "0, 1");
}

function findName(file: string, { name }: CheckpointTensor): string {
  const [, layer, part = "", kind] = /^blk\.(\d+)\.(\w+)\.(weight|bias)$/.exec(name) ?? [];
  const found =
    layer === undefined
      ? otherNames[name]
      : Object.hasOwn(layerNames, part)
        ? `model.layers.${layer}.${layerNames[part]}.${kind}`
        : undefined;
  if (found !== undefined) return found;
  const known = [
    ...Object.keys(otherNames),
    ...Object.keys(layerNames).map((each) => `blk.N.${each}`),
  ];
  throw unsupportedError(file, `the tensor ${quoteName(name)}`, known.join(", "));
}

function readFacts(
  reader: MetadataReader,
  architecture: string,
  family: Family,
  tensors: readonly CheckpointTensor[],
): DecoderFacts {
  const count = (key: ArchitectureKey) => reader.count(`${architecture}.${key}`);
  const layers = reader.count(`${architecture}.block_count`, maxLayers);
  const [hiddenSize, heads] = [count("embedding_length"), count("attention.head_count")];
  const headSize = reader.find(`${architecture}.attention.key_length`) ?? hiddenSize / heads;
  const dimensions = reader.find(`${architecture}.rope.dimension_count`) ?? headSize;
  const theta = reader.find(`${architecture}.rope.freq_base`) ?? family.theta;
  return {
    ...family.facts,
    vocabularySize: reader.list("tokenizer.ggml.tokens").length,
    hiddenSize,
    intermediateSize: count("feed_forward_length"),
    layers,
    heads,
    kvHeads: reader.find(`${architecture}.attention.head_count_kv`) ?? heads,
    headSize,
    contextLength: count("context_length"),
    epsilon: reader.number(`${architecture}.attention.layer_norm_rms_epsilon`),
    attentionScale: headSize ** -0.5,
    attentionSoftcap: 0,
    logitSoftcap: 0,
    rotary: { theta, dimensions, scaling: readScaling(tensors, dimensions / 2) },
    localRotary: undefined,
    windows: Array.from({ length: layers }, () => 0),
    isTied: !tensors.some(({ name }) => name === "output.weight"),
    embeddingScale: 1,
  };
}

function readScaling(tensors: readonly CheckpointTensor[], frequencies: number): RotaryScaling {
  const tensor = tensors.find(({ name }) => name === divisorsName);
  if (tensor === undefined) return { kind: "none" };
  if (tensor.dims.join() !== `${frequencies}`) {
    const problem = `shape [${tensor.dims.join(", ")}], and there are ${frequencies} frequencies`;
    throw invalidFileError(tensor.path, tensor.name, problem);
  }
  using stored = new CheckpointValues([
    { ...tensor, kind: "stored", rows: 1, columns: frequencies },
  ]);
  const divisors = new Float32Array(frequencies);
  stored.read(0, divisors);
  if (!divisors.every((each) => each > 0 && Number.isFinite(each))) {
    throw invalidFileError(tensor.path, tensor.name, "a divisor is not above 0 and finite");
  }
  return { kind: "divided", divisors: [...divisors] };
}

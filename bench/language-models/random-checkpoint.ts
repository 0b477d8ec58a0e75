import { createWriteStream } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { listenLocally } from "../../test/support/listen-locally.ts";
import { createNormal, createRandom } from "../../src/engine/samples/generate-sample.ts";

/** Models of the Llama family whose weights are random. */
export const sizes = {
  "0.85B": { hidden: 2048, inner: 5632, layers: 16, heads: 32, keyValueHeads: 8 },
  "7B": { hidden: 4096, inner: 11_008, layers: 32, heads: 32, keyValueHeads: 32 },
  "70B": { hidden: 8192, inner: 28_672, layers: 80, heads: 64, keyValueHeads: 8 },
} as const;
export type Size = keyof typeof sizes;

const vocabulary = 32_000;
/** Largest shard, bytes, as transformers writes them. */
const maxShardBytes = 5e9;

interface RemoteFile {
  readonly bytes: number;
  /** @param end behind the last byte */
  read(this: void, start: number, end: number): Iterable<Buffer>;
}

/**
 * Serves a checkpoint in BF16 by ranges, whose weights are made when they are asked for.
 * @returns source of its folder
 */
export async function serveCheckpoint(
  owner: Parameters<typeof listenLocally>[0],
  size: Size,
): Promise<string> {
  const files = makeFiles(size);
  const server = createServer((request, response) => {
    const file = files.get((request.url ?? "").replace("/checkpoint/", ""));
    if (file === undefined) response.writeHead(404).end();
    else sendFile(file, request, response);
  });
  return `${await listenLocally(owner, server)}/checkpoint/`;
}

/** Writes the same files to a folder. */
export async function writeCheckpoint(folder: string, size: Size): Promise<void> {
  for (const [name, { bytes, read }] of makeFiles(size)) {
    await pipeline(Readable.from(read(0, bytes)), createWriteStream(join(folder, name)));
  }
}

function sendFile(file: RemoteFile, { headers }: IncomingMessage, response: ServerResponse): void {
  const range = /^bytes=(\d+)-(\d+)$/.exec(headers.range ?? "");
  const start = Number(range?.[1] ?? 0);
  const end = Math.min(file.bytes, Number(range?.[2] ?? file.bytes) + 1);
  response.writeHead(range === null ? 200 : 206, {
    etag: '"1"',
    "content-length": end - start,
    ...(range !== null && { "content-range": `bytes ${start}-${end - 1}/${file.bytes}` }),
  });
  Readable.from(file.read(start, end)).pipe(response);
}

function makeFiles(size: Size): Map<string, RemoteFile> {
  const { hidden, inner, layers, heads, keyValueHeads } = sizes[size];
  const config = {
    architectures: ["LlamaForCausalLM"],
    model_type: "llama",
    hidden_size: hidden,
    intermediate_size: inner,
    num_hidden_layers: layers,
    num_attention_heads: heads,
    num_key_value_heads: keyValueHeads,
    vocab_size: vocabulary,
    max_position_embeddings: 4096,
    rms_norm_eps: 1e-5,
    rope_theta: 10_000,
    hidden_act: "silu",
    tie_word_embeddings: false,
    bos_token_id: 1,
    eos_token_id: 2,
    torch_dtype: "bfloat16",
  };
  const words = { vocab: { t: 0 }, unk_token: "t", continuing_subword_prefix: "##" };
  const model = { type: "WordPiece", ...words, max_input_chars_per_word: 100 };
  const tokenizer = { version: "1.0", added_tokens: [], model };
  const weightMap: Record<string, string> = {};
  const files = new Map<string, RemoteFile>();
  const values = makeValues();
  for (const [index, tensors] of divide(listTensors(size)).entries()) {
    const name = `model-${index}.safetensors`;
    for (const tensor of tensors.keys()) weightMap[tensor] = name;
    files.set(name, makeShard(tensors, { values, firstByte: index * 1_000_002 }));
  }
  const texts = {
    "config.json": config,
    "tokenizer.json": tokenizer,
    "tokenizer_config.json": { tokenizer_class: "PreTrainedTokenizerFast" },
    "model.safetensors.index.json": { metadata: {}, weight_map: weightMap },
  };
  for (const [name, content] of Object.entries(texts)) {
    const text = Buffer.from(JSON.stringify(content));
    files.set(name, { bytes: text.length, read: (start, end) => [text.subarray(start, end)] });
  }
  return files;
}

/** Shapes by names, in the order of transformers' files. */
function listTensors(size: Size): Map<string, readonly number[]> {
  const { hidden, inner, layers, heads, keyValueHeads } = sizes[size];
  const keyValues = (hidden / heads) * keyValueHeads;
  const layer = {
    "input_layernorm.weight": [hidden],
    "mlp.down_proj.weight": [hidden, inner],
    "mlp.gate_proj.weight": [inner, hidden],
    "mlp.up_proj.weight": [inner, hidden],
    "post_attention_layernorm.weight": [hidden],
    "self_attn.k_proj.weight": [keyValues, hidden],
    "self_attn.o_proj.weight": [hidden, hidden],
    "self_attn.q_proj.weight": [hidden, hidden],
    "self_attn.v_proj.weight": [keyValues, hidden],
  };
  return new Map<string, readonly number[]>([
    ["lm_head.weight", [vocabulary, hidden]],
    ["model.embed_tokens.weight", [vocabulary, hidden]],
    ...Array.from({ length: layers }, (_, index) =>
      Object.entries(layer).map(
        ([name, shape]) => [`model.layers.${index}.${name}`, shape] as const,
      ),
    ).flat(),
    ["model.norm.weight", [hidden]],
  ]);
}

function countBytes(shape: readonly number[]): number {
  return shape.reduce((product, length) => product * length, 2);
}

function divide(tensors: ReadonlyMap<string, readonly number[]>) {
  const shards: Map<string, readonly number[]>[] = [];
  let left = 0;
  for (const [name, shape] of tensors) {
    const bytes = countBytes(shape);
    if (bytes > left) {
      shards.push(new Map());
      left = maxShardBytes;
    }
    shards.at(-1)?.set(name, shape);
    left -= bytes;
  }
  return shards;
}

/** Weights of the normal distribution in BF16, which repeat after an odd number of them. */
function makeValues(): Buffer {
  const normal = createNormal(createRandom(7));
  const values = Float32Array.from({ length: 1_000_003 }, () => normal() * 0.02);
  return Buffer.from(
    Uint16Array.from(new Uint32Array(values.buffer), (bits) => bits >>> 16).buffer,
  );
}

function makeShard(
  tensors: ReadonlyMap<string, readonly number[]>,
  { values, firstByte }: { readonly values: Buffer; readonly firstByte: number },
): RemoteFile {
  let bytes = 0;
  const entries = [...tensors].map(([name, shape]) => {
    const start = bytes;
    bytes += countBytes(shape);
    return [name, { dtype: "BF16", shape, data_offsets: [start, bytes] }] as const;
  });
  const text = Buffer.from(JSON.stringify(Object.fromEntries(entries)));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.length));
  const header = Buffer.concat([length, text]);
  return {
    bytes: header.length + bytes,
    *read(start, end) {
      let position = start;
      while (position < end) {
        const part =
          position < header.length
            ? header.subarray(position)
            : values.subarray((position - header.length + firstByte) % values.length);
        yield part.subarray(0, end - position);
        position += part.length;
      }
    },
  };
}

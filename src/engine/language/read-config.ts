import { readFileSync } from "node:fs";
import path from "node:path";
import { z } from "zod";
import { ServiceError } from "../../contract/errors.ts";
import { quoteName } from "../../contract/text/quote-name.ts";
import type { RotaryFacts, RotaryScaling } from "../checkpoints/rotary-cache.ts";
import { checkAttention } from "./check-attention.ts";
import { fp8BlockSizes } from "./checkpoint-weights.ts";
import { type DecoderFacts, maxLayers } from "./decoder-facts.ts";
import { type Family, familyNames, findFamily } from "./families.ts";

const count = z
  .int()
  .min(1)
  .max(2 ** 31);
const window = count.nullable();

/** A way to spell rotary embeddings: `rope_scaling` of transformers 4, `rope_parameters` of 5. */
const rope = z.strictObject({
  rope_type: z.string().optional(),
  type: z.string().optional(),
  rope_theta: z.number().positive().optional(),
  factor: z.number().positive().optional(),
  low_freq_factor: z.number().positive().optional(),
  high_freq_factor: z.number().positive().optional(),
  original_max_position_embeddings: count.optional(),
  partial_rotary_factor: z.number().positive().max(1).optional(),
});
type Rope = z.infer<typeof rope>;

/**
 * Fields that change what a model computes. Those that only one family has are here too: another
 * that has them is refused by `families`.
 */
const arithmetic = {
  model_type: z.string(),
  hidden_size: count,
  intermediate_size: count,
  num_hidden_layers: count.max(maxLayers),
  num_attention_heads: count,
  num_key_value_heads: count.optional(),
  head_dim: count.nullish(),
  vocab_size: count,
  max_position_embeddings: count,
  rms_norm_eps: z.float32().positive(),
  hidden_act: z.string().optional(),
  hidden_activation: z.string().nullish(),
  tie_word_embeddings: z.boolean().optional(),
  rope_theta: z.number().positive().optional(),
  rope_local_base_freq: z.number().positive().optional(),
  rope_scaling: rope.nullish(),
  rope_parameters: z
    .union([rope, z.strictObject({ full_attention: rope, sliding_attention: rope })])
    .nullish(),
  partial_rotary_factor: z.number().positive().max(1).optional(),
  original_max_position_embeddings: count.nullish(),
  attention_bias: z.literal(false).nullish(),
  mlp_bias: z.literal(false).optional(),
  pretraining_tp: z.literal(1).optional(),
  rope_interleaved: z.literal(false).optional(),
  sliding_window: window.optional(),
  use_sliding_window: z.boolean().optional(),
  max_window_layers: z.int().min(0).optional(),
  sliding_window_pattern: count.optional(),
  _sliding_window_pattern: count.optional(),
  layer_types: z.array(z.enum(["full_attention", "sliding_attention"])).nullish(),
  query_pre_attn_scalar: z.float32().positive().optional(),
  attn_logit_softcapping: z.float32().positive().nullish(),
  final_logit_softcapping: z.float32().positive().nullish(),
  quantization_config: z
    .object({
      quant_method: z.literal("fp8"),
      weight_block_size: z.tuple([z.literal(fp8BlockSizes.rows), z.literal(fp8BlockSizes.columns)]),
    })
    .optional(),
  use_bidirectional_attention: z.literal(false).nullish(),
} as const;

/** Fields that say nothing of what a trained model computes. */
const others = [
  "architectures",
  "torch_dtype",
  "dtype",
  "transformers_version",
  "use_cache",
  "bos_token_id",
  "eos_token_id",
  "pad_token_id",
  "initializer_range",
  "attention_dropout",
  "hidden_dropout",
  "resid_pdrop",
  "embd_pdrop",
  "_name_or_path",
  "auto_map",
  "is_llama_config",
  "transformers.js_config",
  "cache_implementation",
  "is_decoder",
  "unsloth_version",
  "unsloth_fixed",
] as const;

const config = z.strictObject({
  ...arithmetic,
  ...Object.fromEntries(others.map((name) => [name, z.unknown().optional()])),
});
type Config = z.infer<z.ZodObject<typeof arithmetic>>;

/**
 * Reads `config.json` of a checkpoint as transformers 4 and 5 write it.
 * @throws ServiceError model_invalid, or model_unsupported for an architecture, a field or a value
 * that is not known, with its name and what is known
 */
export function readConfig(file: string): DecoderFacts {
  const found = parseConfig(file);
  const family = findFamily(found.model_type);
  if (family === undefined) {
    const known = `the known ones are ${familyNames.join(", ")}`;
    throw unsupported(file, `model_type ${quoteName(found.model_type)} is not known; ${known}`);
  }
  const facts = { ...readSizes(found), ...readFamily(file, found, family) };
  const headSize =
    (found.head_dim ?? null) === null ? "hidden_size / num_attention_heads" : "head_dim";
  checkAttention(file, facts, {
    heads: "num_attention_heads",
    kvHeads: "num_key_value_heads",
    headSize,
    rotated: `${headSize} * partial_rotary_factor`,
  });
  return facts;
}

function parseConfig(file: string): Config {
  const parsed = config.safeParse(parseJson(file));
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  if (issue?.code === "unrecognized_keys") {
    const known = [...Object.keys(arithmetic), ...others].join(", ");
    throw unsupported(
      file,
      `the field ${quoteName(issue.keys[0] ?? "")} is not known; the known ones are ${known}`,
    );
  }
  throw unsupported(file, `${issue?.path.join(".")}: ${issue?.message}`);
}

function parseJson(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, "utf8"));
  } catch (cause) {
    throw new ServiceError("model_invalid", `${path.basename(file)} is not JSON`, { cause });
  }
}

function unsupported(file: string, problem: string): ServiceError {
  return new ServiceError("model_unsupported", `${path.basename(file)}: ${problem}`);
}

function readSizes(found: Config) {
  const heads = found.num_attention_heads;
  return {
    vocabularySize: found.vocab_size,
    hiddenSize: found.hidden_size,
    intermediateSize: found.intermediate_size,
    layers: found.num_hidden_layers,
    heads,
    kvHeads: found.num_key_value_heads ?? heads,
    headSize: headSize(found),
    contextLength: found.max_position_embeddings,
    epsilon: found.rms_norm_eps,
  };
}

function headSize({ head_dim: named, hidden_size: hidden, num_attention_heads: heads }: Config) {
  return named ?? hidden / heads;
}

function readFamily(file: string, found: Config, family: Family) {
  checkFields(file, found, family);
  const activation = found.hidden_activation ?? found.hidden_act ?? family.activation;
  if (activation !== family.activation) {
    const what = `the activation ${quoteName(activation)} is not known`;
    throw unsupported(file, `${what}; known is ${family.activation}`);
  }
  return {
    ...family.facts,
    attentionScale: (found.query_pre_attn_scalar ?? headSize(found)) ** -0.5,
    attentionSoftcap: found.attn_logit_softcapping ?? 0,
    logitSoftcap: found.final_logit_softcapping ?? 0,
    ...readRotary(file, found, family),
    windows: readWindows(file, found, family),
    isTied: found.tie_word_embeddings ?? family.isTiedByDefault,
    embeddingScale: family.scalesEmbeddings ? Math.fround(Math.sqrt(found.hidden_size)) : 1,
  };
}

/** Fields; each family names those that it has. */
const familyFields = [
  "query_pre_attn_scalar",
  "attn_logit_softcapping",
  "final_logit_softcapping",
  "rope_local_base_freq",
  "sliding_window_pattern",
  "_sliding_window_pattern",
  "max_window_layers",
  "use_sliding_window",
  "sliding_window",
] as const satisfies readonly (keyof Config)[];

/** A field that another family has would be arithmetic which is not done. */
function checkFields(file: string, found: Config, { requires, has }: Family): void {
  for (const name of requires) {
    if (found[name] === undefined) {
      throw unsupported(file, `${found.model_type} needs the field ${name}`);
    }
  }
  if (found.use_sliding_window === true && found.sliding_window === undefined) {
    throw unsupported(file, "use_sliding_window needs the field sliding_window");
  }
  const allowed: readonly string[] = [...requires, ...has];
  const foreign = familyFields.find(
    (name) => (found[name] ?? null) !== null && !allowed.includes(name),
  );
  if (foreign !== undefined) throw unsupported(file, `${found.model_type} has no field ${foreign}`);
}

function readRotary(file: string, found: Config, { theta, localTheta }: Family) {
  const spelled = found.rope_parameters ?? found.rope_scaling ?? {};
  const [full, local] =
    "full_attention" in spelled
      ? [spelled.full_attention, spelled.sliding_attention]
      : [spelled, undefined];
  const base = full.rope_theta ?? found.rope_theta ?? theta;
  const rotary = toRotary(file, found, full, base);
  if (localTheta === undefined) return { rotary, localRotary: undefined };
  const localBase = local?.rope_theta ?? found.rope_local_base_freq ?? localTheta;
  return { rotary, localRotary: toRotary(file, found, local ?? {}, localBase) };
}

function toRotary(file: string, found: Config, spelled: Rope, theta: number): RotaryFacts {
  const part = spelled.partial_rotary_factor ?? found.partial_rotary_factor ?? 1;
  const dimensions = Math.floor(headSize(found) * part);
  return { theta, dimensions, scaling: toScaling(file, spelled) };
}

function toScaling(file: string, spelled: Rope): RotaryScaling {
  const kind = spelled.rope_type ?? spelled.type ?? "default";
  const demand = (
    name: "factor" | "low_freq_factor" | "high_freq_factor" | "original_max_position_embeddings",
  ) => {
    const value = spelled[name];
    if (value === undefined) throw unsupported(file, `rope type ${kind} needs the field ${name}`);
    return value;
  };
  switch (kind) {
    case "default":
      return { kind: "none" };
    case "linear":
      return { kind: "linear", factor: demand("factor") };
    case "llama3":
      return {
        kind: "llama3",
        factor: demand("factor"),
        lowFrequencyFactor: demand("low_freq_factor"),
        highFrequencyFactor: demand("high_freq_factor"),
        originalContext: demand("original_max_position_embeddings"),
      };
    default:
      throw unsupported(
        file,
        `rope type ${quoteName(kind)} is not known; the known ones are default, linear, llama3`,
      );
  }
}

/** What the configuration says of each layer, else what the family does. */
function readWindows(file: string, found: Config, family: Family): number[] {
  const { sliding_window: size, num_hidden_layers: layers, layer_types: types } = found;
  const isOff = family.has.includes("use_sliding_window") && found.use_sliding_window !== true;
  if (types && types.length !== layers) {
    const problem = `layer_types has ${types.length} entries, and num_hidden_layers is ${layers}`;
    throw unsupported(file, problem);
  }
  return Array.from({ length: layers }, (_, layer) => {
    if (size === undefined || size === null || isOff) return 0;
    const named = types?.[layer];
    const slides =
      named === undefined ? family.slides(layer, found) : named === "sliding_attention";
    return slides ? size : 0;
  });
}

import type { DecoderFacts } from "./decoder-facts.ts";

type FamilyFacts = Pick<
  DecoderFacts,
  | "genaiType"
  | "hasProjectionBias"
  | "hasHeadNorms"
  | "hasOutputNorms"
  | "hasWideSums"
  | "normAddend"
  | "activation"
>;

interface WindowFields {
  readonly max_window_layers?: number | undefined;
  readonly use_sliding_window?: boolean | undefined;
  readonly sliding_window_pattern?: number | undefined;
  readonly _sliding_window_pattern?: number | undefined;
}

/** Fields of config.json that families differ in. */
type ConfigField =
  | "num_key_value_heads"
  | "head_dim"
  | "query_pre_attn_scalar"
  | "attn_logit_softcapping"
  | "final_logit_softcapping"
  | "rope_local_base_freq"
  | "sliding_window"
  | "use_sliding_window"
  | "sliding_window_pattern"
  | "_sliding_window_pattern"
  | "max_window_layers";

/** What is the same for all models of a family, beside the fields of their configurations. */
export interface Family {
  readonly facts: FamilyFacts;
  /** Name of the activation function in configurations. */
  readonly activation: string;
  /** Base of the rotary frequencies, and of those of layers with a window, where no field says it. */
  readonly theta: number;
  readonly localTheta?: number;
  readonly isTiedByDefault: boolean;
  /** Whether embeddings are multiplied by the root of their size. */
  readonly scalesEmbeddings: boolean;
  /** Fields without which transformers takes a value that differs between its versions or models. */
  readonly requires: readonly ConfigField[];
  /** Fields that it may have besides those of all families. */
  readonly has: readonly ConfigField[];
  /** Whether a layer has the window, where no field says it of each layer. */
  readonly slides: (layer: number, fields: WindowFields) => boolean;
}

const llama: Family = {
  facts: {
    genaiType: "llama",
    hasProjectionBias: false,
    hasHeadNorms: false,
    hasOutputNorms: false,
    hasWideSums: false,
    normAddend: 0,
    activation: "silu",
  },
  activation: "silu",
  theta: 10_000,
  isTiedByDefault: false,
  scalesEmbeddings: false,
  requires: [],
  has: [],
  slides: () => false,
};

const gemmaFields: readonly ConfigField[] = [
  "num_key_value_heads",
  "head_dim",
  "query_pre_attn_scalar",
  "sliding_window",
];

const gemma: Omit<Family, "requires" | "has" | "slides"> = {
  facts: {
    genaiType: "gemma2",
    hasProjectionBias: false,
    hasHeadNorms: false,
    hasOutputNorms: true,
    hasWideSums: true,
    normAddend: 1,
    activation: "gelu-tanh",
  },
  activation: "gelu_pytorch_tanh",
  theta: 10_000,
  isTiedByDefault: true,
  scalesEmbeddings: true,
};

/** Qwen's windows are those of the upper layers; 28 is transformers' own. */
function slidesFromLayer(layer: number, { max_window_layers: first = 28 }: WindowFields): boolean {
  return layer >= first;
}

/** Families by `model_type`, each as a file of transformers' `models` defines it. */
export const families = {
  llama,
  mistral: {
    ...llama,
    facts: { ...llama.facts, genaiType: "mistral" },
    requires: ["num_key_value_heads", "sliding_window"],
    slides: () => true,
  },
  qwen2: {
    ...llama,
    facts: { ...llama.facts, genaiType: "qwen2", hasProjectionBias: true },
    requires: ["num_key_value_heads"],
    has: ["sliding_window", "use_sliding_window", "max_window_layers"],
    slides: slidesFromLayer,
  },
  qwen3: {
    ...llama,
    facts: { ...llama.facts, genaiType: "qwen3", hasHeadNorms: true },
    requires: ["num_key_value_heads", "head_dim"],
    has: ["sliding_window", "use_sliding_window", "max_window_layers"],
    slides: slidesFromLayer,
  },
  phi3: {
    ...llama,
    facts: { ...llama.facts, genaiType: "phi3" },
    has: ["sliding_window"],
    slides: () => true,
  },
  gemma2: {
    ...gemma,
    requires: [...gemmaFields, "attn_logit_softcapping", "final_logit_softcapping"],
    has: [],
    slides: (layer) => layer % 2 === 0,
  },
  gemma3_text: {
    ...gemma,
    facts: { ...gemma.facts, genaiType: "gemma3_text", hasHeadNorms: true },
    theta: 1_000_000,
    localTheta: 10_000,
    requires: gemmaFields,
    has: [
      "sliding_window_pattern",
      "_sliding_window_pattern",
      "attn_logit_softcapping",
      "final_logit_softcapping",
      "rope_local_base_freq",
    ],
    slides: (layer, { sliding_window_pattern: pattern, _sliding_window_pattern: other }) =>
      (layer + 1) % (pattern ?? other ?? 6) !== 0,
  },
} as const satisfies Record<string, Family>;

export const familyNames: readonly string[] = Object.keys(families);

/** The family of a `model_type`, where it is known. */
export function findFamily(modelType: string): Family | undefined {
  const known: Readonly<Record<string, Family>> = families;
  return Object.hasOwn(known, modelType) ? known[modelType] : undefined;
}

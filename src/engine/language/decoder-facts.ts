import type { CheckpointTensor } from "../checkpoints/checkpoint-tensor.ts";
import type { RotaryFacts } from "../checkpoints/rotary-cache.ts";

/** Most layers of a model: they are counted before a tensor is looked for. */
export const maxLayers = 4096;

/** All that says which function a decoder's weights are: what a graph is written from. */
export interface DecoderFacts {
  /** `model.type` of genai_config.json, which says to ONNX Runtime GenAI how to run it. */
  readonly genaiType: string;
  readonly vocabularySize: number;
  readonly hiddenSize: number;
  /** Of the feed-forward network. */
  readonly intermediateSize: number;
  readonly layers: number;
  readonly heads: number;
  /** Heads of keys and values, each for `heads / kvHeads` heads of queries. */
  readonly kvHeads: number;
  readonly headSize: number;
  /** Positions that the rotary caches have. */
  readonly contextLength: number;
  /** Of every RMS norm. */
  readonly epsilon: number;
  /** Scores are multiplied by it. */
  readonly attentionScale: number;
  /** Scores are bounded to ± this by a hyperbolic tangent; 0 for none. */
  readonly attentionSoftcap: number;
  /** Logits are bounded likewise; 0 for none. */
  readonly logitSoftcap: number;
  readonly rotary: RotaryFacts;
  /** Of layers with a window, where they have frequencies of their own. */
  readonly localRotary: RotaryFacts | undefined;
  /** For each layer how many tokens, itself among them, a token attends to; 0 for all before it. */
  readonly windows: readonly number[];
  readonly isTied: boolean;
  readonly hasProjectionBias: boolean;
  /** Whether an RMS norm is applied to each head of queries and keys. */
  readonly hasHeadNorms: boolean;
  /** Whether the outputs of attention and of the feed-forward network have norms too. */
  readonly hasOutputNorms: boolean;
  /** Whether the sums of layers can lie beyond the range of half precision. */
  readonly hasWideSums: boolean;
  /** Added to the weights of norms, as Gemma stores them. */
  readonly normAddend: 0 | 1;
  readonly activation: "silu" | "gelu-tanh";
  /** Embeddings are multiplied by it. */
  readonly embeddingScale: number;
}

/** Tokens with a role, by id. */
export interface SpecialTokens {
  readonly bos: number | undefined;
  /** Any of them ends a generated text. */
  readonly eos: readonly number[];
  readonly pad: number | undefined;
}

/** A checkpoint as its headers describe it. */
export interface LanguageModel {
  readonly facts: DecoderFacts;
  /** By the names that transformers gives them. */
  readonly tensors: ReadonlyMap<string, CheckpointTensor>;
  /** Bytes of the files that hold the tensors. */
  readonly bytes: number;
}

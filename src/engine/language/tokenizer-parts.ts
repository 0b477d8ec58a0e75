/** What differs between the kinds of tokenizers in a tokenizer.json, by its names there. */
export interface TokenizerParts {
  /** What a text becomes before it is cut. */
  readonly normalizer: object | null;
  readonly preTokenizer: object | null;
  readonly postProcessors: readonly object[];
  readonly decoder: object;
  readonly model: {
    readonly unk_token: string | null;
    readonly fuse_unk: boolean;
    readonly byte_fallback: boolean;
    readonly ignore_merges: boolean;
    /** Pairs of words, each with a space between, the first ones first merged. */
    readonly merges: readonly string[];
  };
  /** Whether texts begin with the token for that, where `add_bos_token` does not say so. */
  readonly addsBos: boolean;
  /** Words of control tokens that end a text also where the file does not name them. */
  readonly endWords: readonly string[];
  /** What ONNX Runtime GenAI calls the kind. */
  readonly tokenizerClass: string;
}

/** Values of `tokenizer.ggml.token_type`. */
export const tokenTypes = { normal: 1, unknown: 2, control: 3, userDefined: 4 } as const;

import type { DecoderFacts, SpecialTokens } from "./decoder-facts.ts";

/** How a model is sampled, as its `generation_config.json` says; missing fields are GenAI's own. */
export interface Sampling {
  readonly do_sample?: boolean | null | undefined;
  readonly temperature?: number | null | undefined;
  readonly top_k?: number | null | undefined;
  readonly top_p?: number | null | undefined;
  readonly repetition_penalty?: number | null | undefined;
}

/**
 * `genai_config.json` of a folder that ONNX Runtime GenAI loads
 * (https://onnxruntime.ai/docs/genai/reference/config.html). Names of inputs and outputs are those
 * of writeDecoderGraph.
 */
export function genaiConfig(
  facts: DecoderFacts,
  provider: "cpu" | "cuda",
  { bos, eos, pad }: SpecialTokens,
  sampling: Sampling,
): object {
  return {
    model: {
      ...(bos === undefined ? {} : { bos_token_id: bos }),
      context_length: facts.contextLength,
      decoder: describeDecoder(facts, provider),
      eos_token_id: eos.length === 1 ? eos[0] : eos,
      pad_token_id: pad ?? eos[0],
      type: facts.genaiType,
      vocab_size: facts.vocabularySize,
    },
    search: {
      diversity_penalty: 0,
      do_sample: sampling.do_sample ?? false,
      early_stopping: true,
      length_penalty: 1,
      max_length: facts.contextLength,
      min_length: 0,
      no_repeat_ngram_size: 0,
      num_beams: 1,
      num_return_sequences: 1,
      past_present_share_buffer: true,
      repetition_penalty: sampling.repetition_penalty ?? 1,
      temperature: sampling.temperature ?? 1,
      top_k: sampling.top_k ?? 50,
      top_p: sampling.top_p ?? 1,
    },
  };
}

/** What GenAI's builder sets for each execution provider. */
const providerOptions = {
  cpu: [],
  cuda: [{ cuda: { enable_cuda_graph: "0", enable_skip_layer_norm_strict_mode: "1" } }],
} as const;

function describeDecoder(facts: DecoderFacts, provider: "cpu" | "cuda"): object {
  const sliding = facts.windows.flatMap((window, layer) => (window > 0 ? [layer] : []));
  const [first] = sliding;
  return {
    session_options: { log_id: "onnxruntime-genai", provider_options: providerOptions[provider] },
    filename: "model.onnx",
    head_size: facts.headSize,
    hidden_size: facts.hiddenSize,
    inputs: {
      input_ids: "input_ids",
      attention_mask: "attention_mask",
      past_key_names: "past_key_values.%d.key",
      past_value_names: "past_key_values.%d.value",
    },
    outputs: {
      logits: "logits",
      present_key_names: "present.%d.key",
      present_value_names: "present.%d.value",
    },
    num_attention_heads: facts.heads,
    num_hidden_layers: facts.layers,
    num_key_value_heads: facts.kvHeads,
    ...(first === undefined ? {} : { sliding_window: describeWindow(facts, first, sliding) }),
  };
}

/** Attention masks the window itself, so that caches keep all tokens. */
function describeWindow({ windows }: DecoderFacts, first: number, layers: readonly number[]) {
  return {
    window_size: windows[first],
    layers,
    slide_inputs: false,
    slide_key_value_cache: false,
  };
}

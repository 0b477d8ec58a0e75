import type { Accuracy } from "./telemetry.ts";

/** What people call the figures of a job: in check runs, on the page, in the log. */
export const figureNames = {
  size: "size",
  accuracy: "accuracy (SQNR)",
  cosine: "cosine similarity",
  top1: "same class",
  nextToken: "same next token",
  perplexity: "perplexity",
  klDivergence: "KL divergence, nats",
  latency: "latency against the original",
  memory: "peak memory",
  gpuMemory: "GPU memory",
  weights: "weights",
} as const;

/** What the samples are that outputs were compared on, after their number. */
export const sampleNames = {
  caller: "samples that were provided",
  generated: "generated samples",
  builtin: "windows of the built-in text",
} as const satisfies Record<Accuracy["data"], string>;

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

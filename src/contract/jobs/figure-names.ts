/** What people call the figures of a job: in check runs, on the page, in the log. */
export const figureNames = {
  size: "size",
  accuracy: "accuracy (SQNR)",
  cosine: "cosine similarity",
  top1: "same class",
  latency: "latency against the original",
  memory: "peak memory",
  weights: "weights",
} as const;

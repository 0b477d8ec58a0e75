interface Term {
  readonly title: string;
  /** What it means, in a sentence or two for people who never saw it. */
  readonly meaning: string;
}

/** Words that reports and pages use. */
export const termTable = {
  model: {
    title: "Model",
    meaning:
      "An ONNX file with its weights; the service never changes it, results are other files.",
  },
  target: {
    title: "Target",
    meaning:
      "The kind of machine that the result is to run on: it says which operators and schemes are " +
      "fast there, and has a recipe for jobs that bring none.",
  },
  recipe: {
    title: "Recipe",
    meaning: "All that is done to a model: the scheme, its granularity, what is left as it is.",
  },
  scheme: {
    title: "Scheme",
    meaning:
      "How weights are stored: in 16, 8 or 4 bits, and whether the arithmetic uses integers too. " +
      "Fewer bits make a smaller result with a larger error.",
  },
  granularity: {
    title: "Granularity",
    meaning:
      "How many weights share one scale: a whole tensor, an output channel or a block. The finer, " +
      "the smaller the error, for a few more bytes.",
  },
  sqnr: {
    title: "SQNR",
    meaning:
      "Signal to quantization noise ratio: how far the outputs are above their error, in decibels. " +
      "20 dB is an error of 10 %, 40 dB of 1 %; below 10 dB a result is rarely of use.",
  },
  cosine: {
    title: "Cosine",
    meaning:
      "Whether the outputs of original and result point the same way: 1 is the same, 0 unrelated.",
  },
  top1: {
    title: "Top-1 agreement",
    meaning: "The share of samples for which the result's first class is the original's.",
  },
  latency: {
    title: "Latency",
    meaning:
      "The time of one run, as a ratio to the original's: below 1 the result is faster. Both are " +
      "timed in turns on the same machine, and the 95 % interval says how sure the ratio is.",
  },
  gate: {
    title: "Gate",
    meaning:
      "A limit on a figure: a job whose result misses it completes, and counts as not passed, so " +
      "that a pipeline can stop there.",
  },
  baseline: {
    title: "Baseline",
    meaning:
      "The accepted result of the same model and target in a suite, such as that of the main branch, " +
      "with which later ones are compared.",
  },
  suite: {
    title: "Suite",
    meaning: "Batches under one name, such as a nightly run: their figures are kept over commits.",
  },
  dryRun: {
    title: "Dry run",
    meaning:
      "A job that only plans: it says how large the result would be and what the job would take, and " +
      "writes no result.",
  },
} as const satisfies Readonly<Record<string, Term>>;

export type TermName = keyof typeof termTable;

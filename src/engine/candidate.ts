/** Latency of a candidate relative to another model's. */
export interface CandidateRatio {
  readonly ratio: number;
  /** The 95 % interval. */
  readonly low: number;
  readonly high: number;
  /** What opening and timing both models once took. */
  readonly secondsPerRound: number;
}

export interface TimingOptions {
  /** Fraction of the time budget that the measurement may take. */
  readonly share: number;
  /** Whether an interval suffices, though it is wide; without it the interval has to be narrow. */
  readonly isDecided?: (interval: Pick<CandidateRatio, "low" | "high">) => boolean;
  /** Model that the candidate is timed against; the original where it is absent. */
  readonly reference?: string | undefined;
}

export interface MeasureOptions {
  /**
   * Compares what a softmax is taken of, where an output is one: probabilities jump where the
   * largest changes, so that errors of a few samples say little of others.
   */
  readonly beforeSoftmax: boolean;
}

/** Runs whole models; the figures are undefined where that is not possible. */
export interface CandidateRunner {
  readonly budgetSeconds: number;
  /** Times a model in pairs with the original or another one. */
  readonly time: (modelPath: string, options: TimingOptions) => Promise<CandidateRatio | undefined>;
  /** SQNR of a model's worst output to the original's, dB. */
  readonly measureSqnrDb: (
    modelPath: string,
    options?: MeasureOptions,
  ) => Promise<number | undefined>;
}

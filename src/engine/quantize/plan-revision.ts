/** Smallest value and largest that were observed. */
export interface ActivationRange {
  readonly low: number;
  readonly high: number;
}

/** What is known about a model's weights from earlier work on it, by their indices. */
export interface PlanRevision {
  /** Weights that stay as they are, and why: no format fits them, or it costs too much. */
  readonly rejected: ReadonlyMap<number, string>;
  /** Weights that are restored at load, and why: integers are not faster, or lose too much. */
  readonly folded: ReadonlyMap<number, string>;
  /** Weights that are stored in half precision and restored at load, and why. */
  readonly halved: ReadonlyMap<number, string>;
  /** Ranges of activations, by the name of the value; those of a plan before they are observed have none. */
  readonly ranges: ReadonlyMap<string, ActivationRange>;
  /** Scales of activations that are smoothed before products in integers, by the name of the value. */
  readonly inputScales: ReadonlyMap<string, readonly number[]>;
  /** Means of channels, for biases that are corrected by them, by the name of the value. */
  readonly inputMeans: ReadonlyMap<string, readonly number[]>;
}

export const firstPlan: PlanRevision = {
  rejected: new Map(),
  folded: new Map(),
  halved: new Map(),
  ranges: new Map(),
  inputScales: new Map(),
  inputMeans: new Map(),
};

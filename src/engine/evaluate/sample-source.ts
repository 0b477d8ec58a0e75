import type { Accuracy } from "../../contract/jobs/telemetry.ts";
import type { Sample } from "./tensor-data.ts";

/** Samples to run both models on. */
export interface SampleSource extends AsyncDisposable {
  readonly data: Accuracy["data"];
  readonly count: number;
  /** Samples of the caller beyond `count`. */
  readonly unused: number;
  /** In order; each iteration starts with the first. */
  readonly samples: AsyncIterable<Sample>;
  /** Error code if the original cannot be run on them. */
  readonly failureCode: "evaluation_data_invalid" | "evaluation_failed";
}

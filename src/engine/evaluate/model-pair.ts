import type { ModelSession } from "./model-session.ts";

/** The two models that an evaluation compares. */
export interface ModelPair {
  readonly original: ModelSession;
  readonly result: ModelSession;
}

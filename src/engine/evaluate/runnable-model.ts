import type { ModelSession } from "./model-session.ts";

/** What running a model on samples needs of its session. */
export type RunnableModel = Pick<ModelSession, "signature" | "run">;

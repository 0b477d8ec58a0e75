import type { Requeue } from "../../controller-runtime/controller.ts";

export const requeueSoon: Requeue = { requeueAfterMs: 1_000 };

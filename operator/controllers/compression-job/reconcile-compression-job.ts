import type { Requeue } from "../../../src/controller-runtime/controller.ts";
import type { ActionContext } from "./act/action-context.ts";
import { executeAction } from "./act/execute-action.ts";
import { decide } from "./decide/decide.ts";
import type { ObservedState } from "./observe/observed-state.ts";

/** When the caches were behind the API server. */
const staleCacheRetryMs = 1_000;

/** Decides and acts; decides again where an action observed more. */
export async function reconcileCompressionJob(
  context: ActionContext,
  observed: ObservedState,
): Promise<Requeue | undefined> {
  const { actions, requeueAt } = decide(observed);
  for (const action of actions) {
    const result = await executeAction(context, action, observed);
    if (result === "stale") return { requeueAfterMs: staleCacheRetryMs };
    if (result !== undefined) return reconcileCompressionJob(context, result);
  }
  if (requeueAt === undefined) return undefined;
  return { requeueAfterMs: Math.max(1, requeueAt - observed.now) };
}

import { type Decision, noActions } from "./decision.ts";
import { pascalCase, waitPatch } from "./transition-patch.ts";
import { waitKind, type Wait } from "./find-wait.ts";
import type { ObservedState } from "../observe/observed-state.ts";

/** Says what the job waits for, or that it waits no longer, if that is news. */
export function reportWait({ resource, now }: ObservedState, wait: Wait | undefined): Decision {
  const patch = waitPatch(resource, wait, now);
  if (patch === undefined) return noActions;
  const write = { type: "writeStatus", patch } as const;
  if (wait === undefined) return { actions: [write] };
  const warning = !waitKind(wait).intended;
  const event = {
    type: "recordEvent",
    warning,
    reason: pascalCase(wait.reason),
    message: wait.message,
  } as const;
  return { actions: [write, event] };
}

import type { ObservedState } from "../observe/observed-state.ts";
import { type Decision, noActions } from "./decision.ts";
import { pascalCase } from "./pascal-case.ts";
import { waitKind, type Wait } from "./waiting.ts";
import { waitPatch } from "./wait-patch.ts";

/** Reports what the job waits for, or that it no longer waits, unless that is reported already. */
export function reportWait(observed: ObservedState, wait: Wait | undefined): Decision {
  const patch = waitPatch(observed, wait);
  if (patch === undefined) return noActions;
  const write = { type: "writeStatus", patch } as const;
  if (wait === undefined) return { actions: [write] };
  const warning = !waitKind(wait).intended;
  const reason = pascalCase(wait.reason);
  return {
    actions: [write, { type: "recordEvent", warning, reason, message: wait.message }],
  };
}

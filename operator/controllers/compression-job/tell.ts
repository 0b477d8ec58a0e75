import { type Decision, nothing } from "./action.ts";
import { pascalCase, tellWait } from "./status-change.ts";
import { kindOfWait, type Wait } from "./waiting.ts";
import type { World } from "./world.ts";

/** Says what the job waits for, or that it waits no longer, if that is news. */
export function tell({ resource, now }: World, wait: Wait | undefined): Decision {
  const patch = tellWait(resource, wait, now);
  if (patch === undefined) return nothing;
  const write = { type: "writeStatus", patch } as const;
  if (wait === undefined) return { actions: [write] };
  const warning = !kindOfWait(wait).wanted;
  const event = { type: "recordEvent", warning, reason: pascalCase(wait.reason), message: wait.message } as const;
  return { actions: [write, event] };
}

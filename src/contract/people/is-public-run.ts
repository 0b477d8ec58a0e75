import type { Workflow } from "./principal.ts";

/** Events that need write access to the repository; all others count as public. */
const memberEvents: readonly string[] = [
  "push",
  "schedule",
  "workflow_dispatch",
  "repository_dispatch",
  "merge_group",
  "release",
  "deployment",
  "create",
  "delete",
];

/** Whether strangers can cause the run, such as by opening a pull request. */
export function isPublicRun({ event }: Workflow): boolean {
  return !memberEvents.includes(event);
}

import * as core from "@actions/core";
import type { ActionOutputName } from "../contract/jobs/action.ts";

/** Sets outputs of the step. */
export function setOutputs(
  outputs: Readonly<Partial<Record<ActionOutputName, string | number>>>,
): void {
  for (const [name, value] of Object.entries(outputs)) core.setOutput(name, value);
}

import { createHash } from "node:crypto";
import type { Inputs } from "./inputs.ts";
import type { WorkflowRun } from "./workflow-run.ts";

/** Identifies the step, and its leg of a matrix. */
export interface StepIdentity {
  /** Name of the check run of the whole batch. */
  readonly checkName: string;
  /** Labels of the jobs of all attempts of the step. */
  readonly runLabels: Readonly<Record<string, string>>;
  /** Labels of the jobs of this attempt. */
  readonly labels: Readonly<Record<string, string>>;
}

const defaultCheckName = "Model compression";

/** The identity, which differs between attempts of a run in the attempt's label alone. */
export function stepIdentity(
  run: Pick<WorkflowRun, "repository" | "runId" | "attempt" | "step">,
  { "check-name": given, matrix = [] }: Pick<Inputs, "check-name" | "matrix">,
): StepIdentity {
  const leg = matrix.length === 0 ? "" : ` (${matrix.join(", ")})`;
  const checkName = given ?? `${defaultCheckName}${leg}`;
  const runLabels = {
    "github-run": run.runId,
    "github-step": digest([run.repository, run.step, checkName, leg]),
  };
  return { checkName, runLabels, labels: { ...runLabels, "github-attempt": String(run.attempt) } };
}

/** SHA-256 of a JSON value, in as many digits as fit in a label. */
export function digest(value: unknown): string {
  return createHash("sha256").update(JSON.stringify(value)).digest("hex").slice(0, 40);
}

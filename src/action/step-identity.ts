import { createHash } from "node:crypto";
import type { WorkflowRun } from "./workflow-run.ts";

/** What tells the step, and its leg of a matrix, from all others. */
export interface StepIdentity {
  /** Name of the check run of the whole batch. */
  readonly checkName: string;
  /** Labels of the step's jobs: those of all its attempts, and those of this one. */
  readonly runLabels: Readonly<Record<string, string>>;
  readonly labels: Readonly<Record<string, string>>;
}

const defaultCheckName = "Model compression";

/** The same for every attempt of a run, but for the number of the attempt. */
export function stepIdentity(
  {
    repository,
    runId,
    attempt,
    step,
  }: Pick<WorkflowRun, "repository" | "runId" | "attempt" | "step">,
  {
    "check-name": given,
    matrix = [],
  }: { readonly "check-name"?: string | undefined; readonly matrix?: string[] | undefined },
): StepIdentity {
  const leg = matrix.length === 0 ? "" : ` (${matrix.join(", ")})`;
  const checkName = given ?? `${defaultCheckName}${leg}`;
  const runLabels = {
    "github-run": runId,
    "github-step": digest([repository, step, checkName, leg]),
  };
  return { checkName, runLabels, labels: { ...runLabels, "github-attempt": String(attempt) } };
}

/** SHA-256 of values, as far as a label holds it. */
export function digest(value: unknown): string {
  return createHash("sha256").update(JSON.stringify(value)).digest("hex").slice(0, 40);
}

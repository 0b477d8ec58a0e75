import { type ErrorCode, errorTable } from "../errors.ts";
import { rankMissedGates } from "./describe-gate.ts";
import { type GateName, gateTable } from "./gate-table.ts";
import type { GateResult } from "./gate.ts";
import type { Job } from "./job.ts";
import { isUndecided, timesToDecide } from "./undecided-gate.ts";

const correctModel = "Correct the model, or the address that it is read from, and push again.";
const correctFiles = "Push the model with all files of its external data, in its own folder.";
const correctRecipe =
  "Change the recipe: the message says what cannot be applied, and the reference has its fields.";
const askAdministrator = "Ask the administrator of the service, whose log has more.";

/** What to do about a job that failed for a reason that does not pass by itself. */
export const errorAdvice: Readonly<Partial<Record<ErrorCode, string>>> = {
  model_not_found: correctModel,
  model_source_refused: correctModel,
  model_checksum_mismatch: correctModel,
  model_invalid: correctModel,
  model_truncated: correctModel,
  model_opset_unsupported: "Export the model with an opset that the message names.",
  model_unsupported: "Export the model without what the message names.",
  model_too_large: "Split the model, or have the administrator raise the limit.",
  external_data_refused: correctFiles,
  external_data_missing: correctFiles,
  external_data_short: correctFiles,
  external_data_unused: correctFiles,
  nothing_to_quantize: correctRecipe,
  recipe_unsupported: correctRecipe,
  evaluation_data_invalid: "Correct the samples of `recipe.evaluation.data`.",
  evaluation_failed: "Run the model with ONNX Runtime: it fails there too.",
  accuracy_below_floor: gateTable.minCosine.advice,
  out_of_memory: "Give the target's workers more memory.",
  deadline_exceeded: "Give the job more time with `deadlineSeconds`.",
};

/** What comes next for a job that did not pass; undefined for one that did. */
export function nextStep({
  status,
  error,
  gates,
  telemetry,
}: Pick<Job, "status" | "error" | "gates" | "telemetry">): string | undefined {
  if (error) {
    const again = "Run it again: this can pass without a change.";
    return errorAdvice[error.code] ?? (errorTable[error.code].retryable ? again : askAdministrator);
  }
  if (status === "Cancelled") return "Run it again, if it was not meant to be cancelled.";
  const [gate] = rankMissedGates(gates);
  if (gate === undefined) return undefined;
  const isGuess = isOnGenerated(telemetry) && accuracyGates.has(gate.gate);
  return [
    ...(gate.level === "warn" ? ["This is a warning, which does not block merging."] : []),
    ...(isGuess && gate.actual !== null ? [giveSamples] : []),
    adviseOnGate(gate),
  ].join(" ");
}

/** Whether outputs were compared on generated samples; the error of weights needs none. */
export function isOnGenerated({ accuracy }: Pick<Job["telemetry"], "accuracy">): boolean {
  return accuracy?.level === "outputs" && accuracy.data === "generated";
}

const accuracyGates: ReadonlySet<GateName> = new Set([
  "minSqnrDb",
  "minCosine",
  "minTop1",
  "maxSqnrDropDb",
]);
const giveSamples =
  "Give real samples as `recipe.evaluation.data` first: generated ones show gross damage only.";

function adviseOnGate(gate: GateResult): string {
  if (gate.actual === null && "change" in gateTable[gate.gate]) {
    return (
      "Run the workflow on the base branch once, which records what is compared with, and then " +
      "this one again."
    );
  }
  if (gate.actual === null) return "Have the figure measured: see `recipe.evaluation`.";
  if (gate.interval && isUndecided(gate))
    return sayWhatDecides(gate.actual, gate.limit, gate.interval);
  return gateTable[gate.gate].advice;
}

function sayWhatDecides(
  actual: number,
  limit: number,
  interval: NonNullable<GateResult["interval"]>,
): string {
  const times = timesToDecide(actual, limit, interval);
  if (times === undefined) {
    return (
      "The figure is so near the limit that measuring it longer decides nothing: set the limit a " +
      "little higher, or lower."
    );
  }
  return (
    `About ${times} times as many sessions of timing would decide it: allow more of ` +
    "`recipe.evaluation.latencyBudgetSeconds`, or time it on a machine that does nothing else."
  );
}

import { type ErrorCode, errorTable } from "../errors.ts";
import { rankMissedGates } from "./describe-gate.ts";
import { type GateKind, type GateName, gateTable } from "./gate-table.ts";
import type { GateResult } from "./gate.ts";
import type { Job } from "./job.ts";
import { isSameModel } from "./model-diff.ts";
import type { Telemetry } from "./telemetry.ts";
import { isUndecided, timesToDecide } from "./undecided-gate.ts";

const correctModel =
  "Correct what the message names, be it the model, its address or its checkout, and push again.";
const correctFiles = "Push the model with all files of its external data, in its own folder.";
const correctRecipe =
  "Change the recipe: the message says what cannot be applied, and the reference has its fields.";
const installationLimit =
  "This is a limit of the installation, not a fault of your change: ask the service's administrator";
const askAdministrator = "Ask the administrator of the service, whose log has more.";

/** What to do about a job that failed for a reason that does not pass by itself. */
export const errorAdvice: Readonly<Partial<Record<ErrorCode, string>>> = {
  model_not_found: correctModel,
  model_source_refused: correctModel,
  model_checksum_mismatch: correctModel,
  model_invalid: correctModel,
  model_truncated: correctModel,
  model_opset_unsupported:
    "Export or convert the model to an opset that the message names, and push again.",
  model_unsupported: "Export the model without what the message names.",
  model_too_large: "Split the model, or have the administrator raise the limit.",
  external_data_refused: correctFiles,
  external_data_missing: correctFiles,
  external_data_short: correctFiles,
  external_data_unused: correctFiles,
  nothing_to_quantize: correctRecipe,
  recipe_unsupported: correctRecipe,
  calibration_data_invalid: "Correct the samples of `recipe.calibration.data`.",
  evaluation_data_invalid: "Correct the samples of `recipe.evaluation.data`.",
  evaluation_failed:
    "Run the model with ONNX Runtime: it fails there too, unless the message says what the worker's " +
    "machine lacks.",
  accuracy_below_floor: gateTable.minCosine.advice,
  out_of_memory: `${installationLimit} to give the target's workers more memory.`,
  out_of_disk: `${installationLimit} to give the target's workers more \`ephemeral-storage\`.`,
  resource_invalid:
    "Change what the message names, or ask the cluster's administrator, where it is a policy.",
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
    ...(isGuess && gate.actual !== null ? [giveSamples] : []),
    adviseOnGate(gate, telemetry.modelDiff),
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

function adviseOnGate(gate: GateResult, diff: Telemetry["modelDiff"]): string {
  const { change }: GateKind = gateTable[gate.gate];
  if (gate.actual === null && change !== undefined) {
    const isIncomparable = gate.baseline !== null && change.needsOneRun !== true;
    return isIncomparable ? judgeYourself : recordFirst;
  }
  if (gate.actual === null) return "Have the figure measured: see `recipe.evaluation`.";
  if (gate.interval && isUndecided(gate))
    return sayWhatDecides(gate.actual, gate.limit, gate.interval);
  const { advice } = gateTable[gate.gate];
  const isOfSameModel = change !== undefined && diff !== undefined && isSameModel(diff);
  return isOfSameModel ? `${sameModel} ${advice}` : advice;
}

const recordFirst =
  "Run the workflow once on the base branch, which records a baseline, and then here again; a model " +
  "that is new there has one when this is merged.";
const judgeYourself =
  "Compare the figures yourself: the base branch records one that can be compared when this is merged.";

const sameModel =
  "The model is the same as the baseline's: look for a change of the recipe, the samples, the " +
  "target or the service's version.";

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
    "To have it decided, raise `recipe.evaluation.latencyBudgetSeconds` to about " +
    `${times} times its value, or time it on a machine that does nothing else.`
  );
}

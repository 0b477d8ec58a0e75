import type { CompressionJobStatus } from "../../contract/custom-resources/compression-job.ts";
import { statusLimits } from "../../contract/custom-resources/api-group.ts";
import type { Job } from "../../contract/jobs/job.ts";
import { textLimits } from "../../contract/limits.ts";
import { isTerminal } from "../../contract/jobs/status.ts";
import type { Telemetry } from "../../contract/jobs/telemetry.ts";
import { truncate } from "../../contract/text/bounded-text.ts";

type StatusFields = Omit<CompressionJobStatus, "conditions" | "observedGeneration">;

/**
 * The fields of a resource's status that follow from the job, within the limits of the resource.
 * It gets figures and files when the job ends: while it works they change with every report.
 */
export function statusFieldsFromJob(job: Job): StatusFields {
  const { error, startedAt, finishedAt } = job;
  return {
    jobId: job.id,
    status: job.status,
    statusReason: truncate(job.statusReason, textLimits.reason),
    statusMessage: limitMessage(job.statusMessage),
    startedAt: startedAt ?? undefined,
    finishedAt: finishedAt ?? undefined,
    transitions: job.transitions.slice(-statusLimits.transitions).map(limitTransition),
    error: error ? { ...error, message: limitMessage(error.message) } : undefined,
    ...resultFields(job),
  };
}

type ResultFields = Pick<StatusFields, "progress" | "ratio" | "telemetry" | "artifacts" | "gates">;

const noResult: ResultFields = {
  progress: undefined,
  ratio: undefined,
  telemetry: undefined,
  artifacts: undefined,
  gates: undefined,
};

function resultFields({ status, telemetry, artifacts, gates }: Job): ResultFields {
  if (!isTerminal(status)) return noResult;
  return {
    progress: `${Math.floor(telemetry.progress.fraction * 100)}%`,
    ratio: telemetry.size?.ratio.toFixed(2),
    telemetry: summarizeTelemetry(telemetry),
    artifacts: artifacts.slice(0, statusLimits.artifacts),
    gates: gates.slice(0, statusLimits.gates),
  };
}

/** A transition without a message lacks the field: undefined would compare as a change. */
function limitTransition(transition: Job["transitions"][number]) {
  const { message } = transition;
  return message === undefined ? transition : { ...transition, message: limitMessage(message) };
}

function summarizeTelemetry(telemetry: Telemetry): StatusFields["telemetry"] {
  const { accuracy, warnings, ...figures } = telemetry;
  const { outputs: _, ...worst } = accuracy ?? { outputs: [] };
  return {
    ...figures,
    accuracy: "level" in worst ? worst : undefined,
    warnings: warnings.slice(0, statusLimits.warnings).map(({ code, message }) => ({
      code: truncate(code, textLimits.reason),
      message: truncate(message, textLimits.telemetryWarning),
    })),
  };
}

function limitMessage(message: string): string {
  return truncate(message, textLimits.statusMessage);
}

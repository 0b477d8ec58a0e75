import type { WarningCode } from "../../contract/jobs/warnings.ts";

/** An entry of a job's `telemetry.warnings`. */
export interface EvaluationWarning {
  readonly code: WarningCode;
  readonly message: string;
}

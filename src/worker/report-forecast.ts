import type { JobInputs } from "./fetch-inputs.ts";
import type { JobContext } from "./job-context.ts";
import { countFolderBytes } from "./watch-usage.ts";
import { maxSeconds } from "../contract/jobs/telemetry.ts";
import { forecastJob } from "../engine/forecast-job.ts";
import { isCheckpoint } from "../engine/language/open-language-model.ts";
import type { CompressionPlan } from "../engine/plan-compression.ts";

/** Reports what the job takes, or the last of its pods; nothing where samples choose what is done. */
export async function reportForecast(
  { assignment, workDirectory, reporter }: JobContext,
  { model }: JobInputs,
  plan: CompressionPlan,
): Promise<void> {
  const { recipe, part, secondsPerByte } = assignment;
  if (recipe.calibration !== undefined) return;
  const costs = await forecastJob(plan, {
    recipe,
    isCheckpoint: isCheckpoint(model.path),
    isRemote: model.remote !== undefined,
    isAssembled: part !== null,
    folderBytes: countFolderBytes(workDirectory),
  });
  const seconds =
    secondsPerByte === null ? undefined : Math.min(maxSeconds, secondsPerByte * plan.originalBytes);
  reporter.telemetry({ forecast: { ...costs, seconds } });
}

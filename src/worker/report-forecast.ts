import type { JobInputs } from "./fetch-inputs.ts";
import type { JobContext } from "./job-context.ts";
import { repeatCosts } from "./repeat-costs.ts";
import { countFolderBytes } from "./watch-usage.ts";
import { forecastJob } from "../engine/forecast-job.ts";
import { isCheckpoint } from "../engine/language/open-language-model.ts";
import type { CompressionPlan } from "../engine/plan-compression.ts";

/** Reports what the job takes, or the last of its pods; nothing where samples choose what is done. */
export async function reportForecast(
  { assignment, workDirectory, reporter }: JobContext,
  { model }: JobInputs,
  plan: CompressionPlan,
): Promise<void> {
  const { recipe, target, part, earlierCosts } = assignment;
  if (recipe.calibration !== undefined) return;
  const planned = await forecastJob(plan, {
    recipe,
    executionProvider: target.executionProvider,
    isCheckpoint: isCheckpoint(model.path),
    isRemote: model.remote !== undefined,
    isAssembled: part !== null,
    folderBytes: countFolderBytes(workDirectory),
  });
  const repeated = repeatCosts(earlierCosts, plan.originalBytes);
  reporter.telemetry({ forecast: { ...planned, ...repeated } });
}

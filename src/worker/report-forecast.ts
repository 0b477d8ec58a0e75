import type { JobInputs } from "./fetch-inputs.ts";
import type { JobContext } from "./job-context.ts";
import { countFolderBytes } from "./watch-usage.ts";
import { type JobCosts, maxSeconds } from "../contract/jobs/telemetry.ts";
import type { EarlierCosts } from "../contract/worker-protocol/messages.ts";
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

/** How far the sizes of models may differ that take the same memory and disk, as a part of them. */
const sameSize = 0.05;

/**
 * What a job takes that does again what earlier ones did: of memory and disk the most of those with
 * a model of the same size, and their median time for each byte; nothing where there are none.
 */
export function repeatCosts(
  earlier: readonly EarlierCosts[],
  originalBytes: number,
): Partial<JobCosts> {
  const paces = earlier
    .flatMap(({ seconds, originalBytes: bytes }) => (seconds === undefined ? [] : seconds / bytes))
    .sort((a, b) => a - b);
  const pace = paces[Math.floor(paces.length / 2)];
  const alike = earlier.filter(
    (costs) => Math.abs(costs.originalBytes / originalBytes - 1) <= sameSize,
  );
  return {
    ...(alike.length > 0 && {
      peakMemoryBytes: Math.max(...alike.map(({ peakMemoryBytes }) => peakMemoryBytes)),
      diskBytes: Math.max(...alike.map(({ diskBytes }) => diskBytes)),
    }),
    ...(pace !== undefined && { seconds: Math.min(maxSeconds, pace * originalBytes) }),
  };
}

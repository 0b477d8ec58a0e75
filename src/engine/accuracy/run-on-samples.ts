import { labelRuntimeErrors } from "../evaluate/label-runtime-errors.ts";
import { ModelSession } from "../evaluate/model-session.ts";
import type { ModelRun } from "./model-run.ts";
import { runSample } from "./run-sample.ts";
import { runStages } from "./run-stages.ts";
import type { RunSettings, SampleVisitor, SampleWork } from "./sample-visitor.ts";

interface SampleRun<Work extends SampleWork> {
  /** What the visitor chose. */
  readonly work: Work;
  /** Peak memory that the model adds to its process; undefined where it is run in stages. */
  readonly peakBytes: number | undefined;
}

/**
 * Runs a model on samples, one after the other or, where it is run in stages, stage by stage. No
 * process of it is left afterwards.
 * @throws ServiceError evaluation_failed if it cannot be loaded or run; evaluation_data_invalid if
 * it is the original, which refuses the caller's data
 */
export async function runOnSamples<Work extends SampleWork>(
  run: ModelRun,
  visitor: SampleVisitor<Work>,
  settings: RunSettings,
): Promise<SampleRun<Work>> {
  const { staging } = run;
  if (staging === undefined) return runWholeModel(run, visitor, settings);
  const work = await runStages({ ...run, staging }, visitor, settings);
  return { work, peakBytes: undefined };
}

async function runWholeModel<Work extends SampleWork>(
  { which, path }: ModelRun,
  { prepare, visit, onProgress }: SampleVisitor<Work>,
  { executionProvider, threads, signal }: RunSettings,
): Promise<SampleRun<Work>> {
  const opening = ModelSession.open(path, { executionProvider, threads, signal });
  await using session = await labelRuntimeErrors(which, opening, { signal });
  const work = await prepare(session);
  const { source, outputs } = work;
  let index = 0;
  for await (const sample of source.samples) {
    const run = { which, index, sample, source, outputs, signal };
    await visit(index, await runSample(session, run));
    onProgress(++index / source.count);
  }
  return { work, peakBytes: await labelRuntimeErrors(which, session.readPeakMemory(), { signal }) };
}

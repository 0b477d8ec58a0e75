import { ServiceError } from "../../contract/errors.ts";
import type { ModelSession } from "../evaluate/model-session.ts";
import { cutStages, type StageModel } from "../pipeline/cut-stages.ts";
import { planPipeline, type PipelinePlan } from "../pipeline/plan-pipeline.ts";
import { weightlessModel } from "../pipeline/weightless-model.ts";
import { withProbeSession } from "../pipeline/with-probe-session.ts";
import { CrossingTensors } from "./crossing-tensors.ts";
import type { ModelRun } from "./model-run.ts";
import { runSample } from "./run-sample.ts";
import type { RunSettings, SampleVisitor, SampleWork } from "./sample-visitor.ts";
import { withStageSession } from "./with-stage-session.ts";

type StagedRun = Required<ModelRun>;

/**
 * Runs a model stage by stage: each stage is written, opened, run on all samples and deleted before
 * the next one. The outputs are those of the whole model up to rounding, since fusions across a cut
 * are lost.
 * @throws ServiceError evaluation_failed if the model cannot be cut, or a stage cannot be run
 */
export async function runStages<Work extends SampleWork>(
  run: StagedRun,
  visitor: SampleVisitor<Work>,
  settings: RunSettings,
): Promise<Work> {
  const { model } = run.staging;
  const work = await withProbeSession(weightlessModel(model), settings, (session) =>
    visitor.prepare(session),
  );
  const plan = await planStages(run, settings);
  const stages = cutStages(model.proto, plan);
  settings.log(`The ${run.which} does not fit into memory and is run in ${stages.length} stages`);
  await using crossing = new CrossingTensors(settings);
  for (const [index, stage] of stages.entries()) {
    const kept = plan.cuts[index]?.values ?? [];
    const onProgress = (fraction: number) => visitor.onProgress((index + fraction) / stages.length);
    crossing.beginStage(stage.outputs.filter((name) => kept.includes(name)));
    await runStage({ run, stage, work, crossing }, { ...visitor, onProgress }, settings);
    await crossing.keepOnly(kept);
  }
  return work;
}

async function planStages(
  { which, staging: { model, maxWeightBytes } }: StagedRun,
  settings: RunSettings,
): Promise<PipelinePlan> {
  try {
    const limits = { balance: "bytes", maxStageRuntimeBytes: maxWeightBytes } as const;
    return await planPipeline(model, { ...settings, ...limits });
  } catch (cause) {
    if (!(cause instanceof ServiceError) || cause.code !== "recipe_unsupported") throw cause;
    const message = `The ${which} does not fit into memory and cannot be cut: ${cause.message}`;
    throw new ServiceError("evaluation_failed", message, { cause });
  }
}

interface StageWork {
  readonly run: StagedRun;
  readonly stage: StageModel;
  readonly work: SampleWork;
  readonly crossing: CrossingTensors;
}

async function runStage(
  stageWork: StageWork,
  { visit, onProgress }: Pick<SampleVisitor<SampleWork>, "visit" | "onProgress">,
  settings: RunSettings,
): Promise<void> {
  const { run, stage, work, crossing } = stageWork;
  const { signal } = settings;
  const isWanted = (name: string) => crossing.takes(name) || work.outputs.includes(name);
  const outputs = stage.outputs.filter(isWanted);
  if (outputs.length === 0) return;
  const model = { ...run.staging.model, proto: stage.proto };
  await withStageSession(model, { ...settings, which: run.which }, async (session) =>
    runStageOnSamples(session, { ...stageWork, outputs }, { visit, onProgress, signal }),
  );
}

async function runStageOnSamples(
  session: ModelSession,
  { run: { which }, stage, work, crossing, outputs }: StageWork & { outputs: readonly string[] },
  {
    visit,
    onProgress,
    signal,
  }: Pick<SampleVisitor<SampleWork> & RunSettings, "visit" | "onProgress" | "signal">,
): Promise<void> {
  const { source } = work;
  let index = 0;
  for await (const given of source.samples) {
    const fromCaller = given.filter(({ name }) => stage.inputs.includes(name));
    const sample = [...fromCaller, ...(await crossing.read(index, stage.inputs))];
    const tensors = await runSample(session, { which, index, sample, source, outputs, signal });
    await crossing.write(index, tensors);
    await visit(
      index,
      tensors.filter(({ name }) => work.outputs.includes(name)),
    );
    onProgress(++index / source.count);
  }
}

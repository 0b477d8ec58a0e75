import { mkdtemp, rm } from "node:fs/promises";
import path from "node:path";
import type { ModelRun } from "./model-run.ts";
import { runSample } from "./run-sample.ts";
import type { RunSettings, SampleVisitor, SampleWork } from "./sample-visitor.ts";
import { type SpoolMemory, TensorSpool } from "./tensor-spool.ts";
import { ServiceError } from "../../contract/errors.ts";
import { labelRuntimeErrors } from "../runtime/label-runtime-errors.ts";
import { type ModelPair, ModelSession, type RowSums } from "../runtime/model-session.ts";
import { sumSample, summedAmong } from "../runtime/summed-rows.ts";
import type { TensorData } from "../runtime/tensor-data.ts";
import type { OnnxModel } from "../onnx/onnx-model.ts";
import { writeModel } from "../onnx/write-model.ts";
import { cutStages, type StageModel } from "../pipeline/cut-stages.ts";
import { type PipelinePlan, planPipeline } from "../pipeline/plan-pipeline.ts";
import { weightlessModel } from "../pipeline/weightless-model.ts";
import { withProbeSession } from "../pipeline/with-probe-session.ts";

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

interface StageRun extends StageWork {
  readonly outputs: readonly string[];
  readonly sums: RowSums | undefined;
}

async function runStage(
  stageWork: StageWork,
  visitor: Pick<SampleVisitor<SampleWork>, "visit" | "onSums" | "onProgress">,
  settings: RunSettings,
): Promise<void> {
  const { run, stage, work, crossing } = stageWork;
  const { signal } = settings;
  const isWanted = (name: string) => crossing.takes(name) || work.outputs.includes(name);
  const outputs = stage.outputs.filter(isWanted);
  const sums = work.sums && summedAmong(stage.outputs, work.sums);
  if (outputs.length === 0 && sums === undefined) return;
  const model = { ...run.staging.model, proto: stage.proto };
  await withStageSession(model, { ...settings, which: run.which }, async (session) =>
    runStageOnSamples(session, { ...stageWork, outputs, sums }, { ...visitor, signal }),
  );
}

async function runStageOnSamples(
  session: ModelSession,
  { run: { which }, stage, work, crossing, outputs, sums }: StageRun,
  {
    visit,
    onSums,
    onProgress,
    signal,
  }: Pick<SampleVisitor<SampleWork> & RunSettings, "visit" | "onSums" | "onProgress" | "signal">,
): Promise<void> {
  const { source } = work;
  if (sums !== undefined) await labelRuntimeErrors(which, session.beginSums(sums), signal);
  let index = 0;
  for await (const given of source.samples) {
    const fromCaller = given.filter(({ name }) => stage.inputs.includes(name));
    const sample = [...fromCaller, ...(await crossing.read(index, stage.inputs))];
    const summing = sums && sumSample(sums, given);
    const options = { which, index, sample, source, outputs, summing, signal };
    const tensors = await runSample(session, options);
    await crossing.write(index, tensors);
    await visit(
      index,
      tensors.filter(({ name }) => work.outputs.includes(name)),
    );
    onProgress(++index / source.count);
  }
  if (sums !== undefined) onSums?.(await labelRuntimeErrors(which, session.writeSums(), signal));
}

interface StageSessionOptions extends RunSettings {
  /** The model that the stage is from. */
  readonly which: keyof ModelPair;
}

/**
 * Writes a stage to a folder of its own and opens it; deletes the folder afterwards.
 * @throws ServiceError evaluation_failed if the runtime cannot load it; storage_full
 */
async function withStageSession(
  model: OnnxModel,
  { which, executionProvider, threads, scratchDirectory, signal }: StageSessionOptions,
  use: (session: ModelSession) => Promise<void>,
): Promise<void> {
  const folder = await mkdtemp(path.join(scratchDirectory, "stage-"));
  try {
    await writeModel(model, { directory: folder, name: "model", signal });
    const file = path.join(folder, "model.onnx");
    const opening = ModelSession.open(file, { executionProvider, threads, signal });
    await using session = await labelRuntimeErrors(which, opening, signal);
    await use(session);
  } finally {
    await rm(folder, { recursive: true });
  }
}

interface CrossingOptions {
  /** Folder for spools. */
  readonly scratchDirectory: string;
  readonly spoolMemory: SpoolMemory;
}

interface StageTensors {
  readonly names: readonly string[];
  readonly spool: TensorSpool;
}

/** Tensors between the stages of a model that are run one after the other. */
class CrossingTensors implements AsyncDisposable {
  readonly #options: CrossingOptions;
  #stages: readonly StageTensors[] = [];

  constructor(options: CrossingOptions) {
    this.#options = options;
  }

  /** Begins a stage whose outputs of these names are used by later ones. */
  beginStage(names: readonly string[]): void {
    const { scratchDirectory, spoolMemory } = this.#options;
    const spool = new TensorSpool(scratchDirectory, spoolMemory);
    this.#stages = [...this.#stages, { names, spool }];
  }

  /** Whether the stage that was begun last has an output of the name for later ones. */
  takes(name: string): boolean {
    return this.#stages.at(-1)?.names.includes(name) === true;
  }

  /** Keeps outputs of the stage that was begun last, as far as later ones use them. */
  async write(sample: number, tensors: readonly TensorData[]): Promise<void> {
    const used = tensors.filter(({ name }) => this.takes(name));
    await this.#stages.at(-1)?.spool.write(sample, used);
  }

  async read(sample: number, names: readonly string[]): Promise<TensorData[]> {
    const found: TensorData[] = [];
    for (const stage of this.#stages) {
      for (const name of stage.names.filter((each) => names.includes(each))) {
        const tensor = await stage.spool.read(sample, name);
        if (tensor !== undefined) found.push(tensor);
      }
    }
    return found;
  }

  /** Deletes what no later stage uses. */
  async keepOnly(names: readonly string[]): Promise<void> {
    const isKept = (stage: StageTensors) => stage.names.some((name) => names.includes(name));
    const unused = this.#stages.filter((stage) => !isKept(stage));
    this.#stages = this.#stages.filter(isKept);
    for (const { spool } of unused) await spool[Symbol.asyncDispose]();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.keepOnly([]);
  }
}

import { mkdtemp, rm } from "node:fs/promises";
import path from "node:path";
import type { ModelRun } from "./model-run.ts";
import { runSample } from "./run-sample.ts";
import { runStages } from "./run-stages.ts";
import type { RunSettings, SampleRun, SampleVisitor, SampleWork } from "./sample-visitor.ts";
import { countNodesOnCpu, describeNodesOnCpu } from "../evaluate/count-nodes-on-cpu.ts";
import type { EvaluationWarning } from "../evaluate/evaluation-warning.ts";
import { labelRuntimeErrors } from "../runtime/label-runtime-errors.ts";
import { sumSample } from "../runtime/summed-rows.ts";
import { ModelSession } from "../runtime/model-session.ts";

/** Runs a model in one session. Its place is profiled where nodes may run on the CPU instead. */
async function runWholeModel<Work extends SampleWork>(
  run: ModelRun,
  visitor: SampleVisitor<Work>,
  settings: RunSettings,
): Promise<SampleRun<Work>> {
  if (settings.executionProvider === "cpu") return runInSession(run, visitor, settings);
  const folder = await mkdtemp(path.join(settings.scratchDirectory, "profile-"));
  try {
    return await runInSession(run, visitor, { ...settings, profileFolder: folder });
  } finally {
    await rm(folder, { recursive: true });
  }
}

interface SessionSettings extends RunSettings {
  readonly profileFolder?: string;
}

async function runInSession<Work extends SampleWork>(
  run: ModelRun,
  { prepare, visit, onSums, onProgress }: SampleVisitor<Work>,
  settings: SessionSettings,
): Promise<SampleRun<Work>> {
  const { which } = run;
  const { signal } = settings;
  await using session = await openSession(run, settings);
  const work = await prepare(session);
  const { source, outputs, sums } = work;
  if (sums !== undefined) await labelRuntimeErrors(which, session.beginSums(sums), signal);
  const warnings: EvaluationWarning[] = [];
  let index = 0;
  for await (const sample of source.samples) {
    const summing = sums && sumSample(sums, sample);
    const options = { which, index, sample, source, outputs, summing, signal };
    await visit(index, await runSample(session, options));
    if (index === 0) warnings.push(...(await findNodesOnCpu(which, session, settings)));
    onProgress(++index / source.count);
  }
  if (sums !== undefined) onSums?.(await labelRuntimeErrors(which, session.writeSums(), signal));
  const memory = await labelRuntimeErrors(which, session.readMemory(), signal);
  return { work, memory, warnings };
}

async function openSession(
  { which, path: modelPath }: ModelRun,
  { executionProvider, threads, profileFolder, signal }: SessionSettings,
): Promise<ModelSession> {
  const options = { executionProvider, threads, signal };
  const profiled =
    profileFolder === undefined
      ? options
      : { ...options, profilePrefix: path.join(profileFolder, "profile") };
  return labelRuntimeErrors(which, ModelSession.open(modelPath, profiled), signal);
}

/** Ends the profile: those of many samples would be large. */
async function findNodesOnCpu(
  which: ModelRun["which"],
  session: ModelSession,
  { profileFolder, signal }: SessionSettings,
): Promise<EvaluationWarning[]> {
  if (profileFolder === undefined) return [];
  await labelRuntimeErrors(which, session.endProfile(), signal);
  return describeNodesOnCpu(which, await countNodesOnCpu(profileFolder));
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
  return { work, memory: {}, warnings: [] };
}

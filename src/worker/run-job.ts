import { mkdir } from "node:fs/promises";
import path from "node:path";
import type { Assignment } from "../contract/worker.ts";
import { compressModel, predictCompression } from "../engine/compress-model.ts";
import { fetchInputs } from "./fetch-inputs.ts";
import { finishJob } from "./finish-job.ts";
import type { JobSurroundings, JobWork } from "./job-work.ts";
import { planModel, planOptions, sayingWhereDataIs } from "./plan-model.ts";
import { assembleModel, optimizePart, shardModel } from "./run-part.ts";
import { createStageClock } from "./stage-clock.ts";

/** Does the work of a job, or the worker's part of it. It is done when this resolves: files are stored and told. */
export async function runJob(assignment: Assignment, surroundings: JobSurroundings): Promise<void> {
  const outputDirectory = path.join(surroundings.directory, "result");
  await mkdir(outputDirectory);
  const runStage = createStageClock({ assignment, ...surroundings });
  const work = { ...surroundings, assignment, runStage, outputDirectory };
  introduce(work);
  switch (assignment.part?.step) {
    case undefined:
      return runWhole(work);
    case "shard":
      return shardModel(work);
    case "optimize":
      return optimizePart(work);
    case "assemble":
      return assembleModel(work);
  }
}

function introduce({ assignment, reporter }: JobWork): void {
  const { id, attempt, kind, recipe, target, model, dryRun, part } = assignment;
  const what = `${kind}${dryRun ? " (dry run)" : ""} "${model.name}" for target "${target.name}"`;
  const share = part?.step === "optimize" ? ` ${part.index + 1} of ${recipe.parallelism}` : "";
  reporter.log(`Job ${id}, attempt ${attempt}${part ? `, ${part.step}${share}` : ""}: ${what}`);
  if (part !== null && part.step !== "shard") return;
  reporter.log(`Recipe: ${recipe.scheme}, granularity ${recipe.granularity}, evaluation ${recipe.evaluation.level}`);
}

async function runWhole(work: JobWork): Promise<void> {
  const { assignment, reporter, runStage } = work;
  const { kind, dryRun, model } = assignment;
  reporter.status(kind === "compress" ? "Sharding" : "Optimizing");
  const inputs = await runStage("fetch", async (stage) => fetchInputs(assignment, work, stage));
  reporter.model(inputs.model.bytes, inputs.model.sha256);
  if (kind === "compress") {
    await planModel(work, inputs);
    reporter.status("Optimizing");
  }
  const report = await runStage("optimize", async (stage) => {
    const options = { ...planOptions(assignment), ...work, ...stage };
    const compress = dryRun ? predictCompression : compressModel;
    return sayingWhereDataIs(model.source, async () => compress(inputs.model.path, options));
  });
  await finishJob(work, inputs, report);
}

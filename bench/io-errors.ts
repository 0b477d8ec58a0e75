import { createHash } from "node:crypto";
import { once } from "node:events";
import { glob, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as delay } from "node:timers/promises";
import { hashTestFile } from "../test/support/external-model.ts";
import { buildFailingCalls, makeFailureCounts } from "../test/support/failing-calls.ts";
import { findLost } from "../test/support/find-lost.ts";
import { startRunningService } from "../test/support/running-service.ts";
import { unlimited } from "../test/support/submit-until.ts";
import { floatInitializer, node, tensorInfo, writeTinyModel } from "../test/support/tiny-model.ts";
import { createPersistentCaller } from "./io-errors/persistent-caller.ts";
import { type Course, runJob, submitAndCancel } from "./io-errors/use-service.ts";
import { type BenchRow, limitRow, reportBench } from "./result.ts";

/**
 * Lets calls fail with which the service reads and writes its data folder, EIO and ENOSPC in turn,
 * while callers upload, submit, cancel, delete and read logs, and workers report. Argument: errors.
 */
const errors = Number(process.argv[3] ?? 1000);
const callers = 4;
/** How many calls of a name there are from one that fails to the next: as often as it is called. */
const steps = {
  open: 17,
  read: 5,
  pread: 211,
  write: 5,
  pwrite: 101,
  ftruncate: 3,
  fsync: 7,
  fdatasync: 13,
  rename: 7,
  link: 3,
};
const calls = Object.keys(steps);

await using cleanup = new AsyncDisposableStack();
const owner = { after: (work: () => unknown) => cleanup.defer(async () => void (await work())) };
const folder = await mkdtemp(join(tmpdir(), "io-errors-"));
owner.after(() => rm(folder, { recursive: true }));
const describeFailure = await buildFailingCalls(folder);
if (describeFailure === undefined) throw new Error("Needs a C compiler on Linux");
const directory = join(folder, "data");
const file = join(folder, "counts");
const counts = await makeFailureCounts(file, calls);
const failing = describeFailure({
  calls,
  error: ["EIO", "ENOSPC"],
  first: 1,
  step: Object.values(steps),
  folder: directory,
  counts: file,
});
const service = await startRunningService(owner, {
  directory,
  environment: { ...unlimited, ...failing },
});
const model = join(folder, "model.onnx");
await writeTinyModel(model, {
  input: [tensorInfo("x", [1, 64])],
  output: [tensorInfo("y", [1, 64])],
  initializer: [floatInitializer("w", [64, 64], Math.sin)],
  node: [node("MatMul", ["x", "w"], ["y"])],
});
const { source } = await service.client.uploadModel(model);
const caller = createPersistentCaller(service);
const course: Course = {
  jobs: [],
  models: [
    createHash("sha256")
      .update(await readFile(model))
      .digest("hex"),
  ],
  deletedJobs: [],
  contradictions: [],
  completed: 0,
};

await counts.allow(errors);
let isOver = false;
const using = [runJobs(), ...Array.from({ length: callers }, useUntilOver)];
const calling = Promise.all(using);
const [processEnds, injected] = await Promise.race([
  countEnds(),
  countInjected(),
  calling.then((): never => {
    throw new Error("The callers have ended");
  }),
]);
isOver = true;
if (processEnds === 0) await calling;
await Promise.allSettled([calling]);
const byCall = await counts.read();
service.process.kill("SIGKILL");
if (service.process.signalCode === null) await once(service.process, "exit");
const lost = await findLost(directory, course);
const half = await findHalfWritten();
for (const text of [...caller.unnamed, ...course.contradictions, ...half]) {
  process.stdout.write(`${text}\n`);
}
await reportBench("io-errors", [
  limitRow(`ends of the process, by ${injected} errors`, "ends", processEnds, 0),
  limitRow("acknowledged jobs and models that are missing", "things", lost.length, 0),
  limitRow("files and tables that are half-written", "things", half.length, 0),
  limitRow("wrong answers", "answers", course.contradictions.length, 0),
  limitRow("failures that do not name the disk", "answers", caller.unnamed.size, 0),
  count("jobs and models that were acknowledged", course.jobs.length + course.models.length),
  count("jobs that workers completed", course.completed),
  ...Array.from(byCall, ([name, failed]) => count(`errors of ${name}`, failed)),
  ...Array.from(caller.failures, ([code, failed]) => count(`answers: ${code}`, failed)),
]);

function count(what: string, ours: number): BenchRow {
  return { what, unit: "", ours, peer: null, bar: "none", met: null };
}

async function useUntilOver(): Promise<void> {
  for (let i = 0; !isOver; i++) await submitAndCancel(caller, course, i % 2 === 0);
}

async function runJobs(): Promise<void> {
  while (!isOver) await runJob(caller, course, source);
}

async function countInjected(): Promise<[number, number]> {
  for (;;) {
    const injected = await sumFailed();
    if (injected >= errors) return [0, injected];
    await delay(100);
  }
}

async function countEnds(): Promise<[number, number]> {
  await once(service.process, "exit");
  return [1, await sumFailed()];
}

async function sumFailed(): Promise<number> {
  return [...(await counts.read()).values()].reduce((sum, failed) => sum + failed, 0);
}

/** Blobs that are not what their names say, deleted jobs that are back, and a broken database. */
async function findHalfWritten(): Promise<string[]> {
  const found: string[] = [];
  for await (const blob of glob(join(directory, "blobs/*/*"))) {
    if ((await hashTestFile(blob)) !== basename(blob)) found.push(blob);
  }
  using database = new DatabaseSync(join(directory, "service.sqlite"));
  const find = database.prepare("select id from jobs where id = ?");
  found.push(...course.deletedJobs.filter((id) => find.get(id) !== undefined));
  const checks = ["integrity_check", "foreign_key_check"].flatMap((check) =>
    database.prepare(`pragma ${check}`).all(),
  );
  const problems = checks.filter((row) => row["integrity_check"] !== "ok");
  return [...found, ...problems.map((row) => JSON.stringify(row))];
}

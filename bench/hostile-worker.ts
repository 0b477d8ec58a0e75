import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readdir, readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as delay } from "node:timers/promises";
import { limits } from "../src/contract/limits.ts";
import { hasHiddenCharacters } from "../src/contract/text/hidden-characters.ts";
import { yieldToService } from "../src/executors/local/worker-process.ts";
import { percentile } from "../src/engine/latency/percentile.ts";
import { followJob } from "../test/support/follow-job.ts";
import { listenLocally } from "../test/support/listen-locally.ts";
import { type RunningService, startRunningService } from "../test/support/running-service.ts";
import { floatInitializer, tensorInfo, writeTinyModel } from "../test/support/tiny-model.ts";
import { until } from "../test/support/until.ts";
import { seedJobs } from "./api/seed-jobs.ts";
import { readPeakOfProcess } from "../src/engine/runtime/read-peak-memory-bytes.ts";
import { type BenchRow, limitRow, reportBench } from "./result.ts";

/**
 * What somebody can do who has taken over a worker: 200 jobs with the largest documents, and a
 * stolen secret that reports whatever the schema takes, and more. Linux. Argument: seconds.
 */
const [, seconds = "300"] = process.argv.slice(2);
const largeJobs = 200;
const pages = 100;
const probeEveryMs = 20;
const maxMiB = 400;

await using cleanup = new AsyncDisposableStack();
const owner = { after: (work: () => unknown) => cleanup.defer(async () => void (await work())) };
const directory = await mkdtemp(join(tmpdir(), "hostile-worker-"));
await seedLargeJobs(join(directory, "service.sqlite"));
const models = join(directory, "models");
await mkdir(models);
const model = join(models, "tiny.onnx");
await writeTinyModel(model, {
  node: [{ opType: "MatMul", input: ["x", "w"], output: ["y"] }],
  initializer: [floatInitializer("w", [64, 64], Math.sin)],
  input: [tensorInfo("x", [1, 64])],
  output: [tensorInfo("y", [1, 64])],
});
const service = await startRunningService(owner, {
  directory,
  environment: {
    MOS_WORKERS: "2",
    MOS_ALLOW_PRIVATE_ADDRESSES: "true",
    MOS_ALLOWED_ROOTS: models,
  },
});
await reportBench("hostile-worker", [...(await readPages(service)), ...(await beHostile(service))]);

async function seedLargeJobs(path: string): Promise<void> {
  await seedJobs(path, largeJobs);
  const database = new DatabaseSync(path);
  const label = `update jobs set document = json_set(document, '$.labels.large', ?)`;
  const set = database.prepare(label);
  set.run("");
  const sizes = database.prepare("select max(length(cast(document as blob))) as bytes from jobs");
  const { bytes } = sizes.get() as { bytes: number };
  set.run("x".repeat(limits.jobDocumentBytes - bytes));
  database.close();
}

async function readPages({ client, ...started }: RunningService): Promise<BenchRow[]> {
  const probes = startProbes(started);
  for (let i = 0; i < pages; i++) await client.call("listJobs", { query: { limit: "200" } });
  const times = await probes.stop();
  const mebibytes = (await readPeakOfProcess(pidOf(started))) / 2 ** 20;
  return [
    limitRow(
      `GET /healthz, worst, in ${pages} pages of large jobs`,
      "ms",
      times.at(-1) ?? NaN,
      100,
    ),
    limitRow("memory of the service, peak", "MiB", mebibytes, maxMiB),
  ];
}

async function beHostile(started: RunningService): Promise<BenchRow[]> {
  const { client, baseUrl } = started;
  const calm = startProbes(started);
  const alone = await timeJobs(started, 10_000);
  const calmMs = percentile(await calm.stop(), 0.99);
  const source = `${await startDrip()}/endless.onnx`;
  const { id } = await client.call("startCompression", {
    body: { model: { source }, target: "cpu" },
  });
  const secret = await until("the worker runs", () => stealSecret(id));
  const attack = fork(join(import.meta.dirname, "hostile-worker/send-reports.ts"), [
    new URL(baseUrl).origin,
    id,
    secret,
  ]);
  yieldToService(pidOf({ process: attack }));
  owner.after(() => attack.kill());
  const probes = startProbes(started);
  const [begin, beginCpu] = [performance.now(), await readCpuSeconds(started)];
  await timeJobs(started, (Number(seconds) * 1000) / 5);
  const early = await readMebibytes(started);
  const beside = await timeJobs(started, (Number(seconds) * 1000 * 4) / 5);
  const late = await readMebibytes(started);
  const times = await probes.stop();
  const usedCpu = (await readCpuSeconds(started)) - beginCpu;
  const share = usedCpu / ((performance.now() - begin) / 1000);
  const p99 = percentile(times, 0.99);
  const sent = await stopAttack(attack);
  await client.call("cancelJob", { params: { id } });
  const { lines } = await followJob(client, id);
  const job = await client.call("getJob", { params: { id } });
  const texts = [...lines.map(({ text }) => text), ...listTexts(job)];
  return [
    { ...limitRow("GET /healthz, p99, beside that without attack", "ms", p99, 50), peer: calmMs },
    {
      what: "processors of the service",
      unit: "cores",
      ours: share,
      peer: null,
      bar: "",
      met: null,
    },
    {
      what: "its worst",
      unit: "ms",
      ours: times.at(-1) ?? NaN,
      peer: null,
      bar: "none",
      met: null,
    },
    {
      what: "reports that were sent",
      unit: "requests",
      ours: sent,
      peer: null,
      bar: "",
      met: null,
    },
    limitRow("memory at the end beside that at a fifth", "MiB", late - early, 100),
    limitRow(
      "hidden characters in what is read",
      "texts",
      texts.filter(hasHiddenCharacters).length,
      0,
    ),
    {
      what: "other jobs, median",
      unit: "ms",
      ours: percentile(beside, 0.5),
      peer: percentile(alone, 0.5),
      bar: "ours <= 2 × the time without it",
      met: percentile(beside, 0.5) <= 2 * percentile(alone, 0.5),
    },
  ];
}

/** A host whose model has no end. */
async function startDrip(): Promise<string> {
  const server = createServer((_request, response) => {
    const timer = setInterval(() => response.write(Buffer.alloc(65_536)), 1000);
    response.once("close", () => clearInterval(timer));
  });
  return listenLocally(owner, server);
}

/** The secret of a job's worker, as its native code can read it; undefined where none runs. */
async function stealSecret(jobId: string): Promise<string | undefined> {
  for (const pid of await readdir("/proc")) {
    const text = await readFile(`/proc/${pid}/environ`, "utf8").catch(() => "");
    const secret = /\0MOS_JOB_TOKEN=([^\0]+)/.exec(text)?.[1];
    if (secret !== undefined && text.includes(jobId)) return secret;
  }
  return undefined;
}

/** Milliseconds of jobs that follow one another for a time, in their order by time. */
async function timeJobs({ client }: RunningService, ms: number): Promise<number[]> {
  const times: number[] = [];
  const end = performance.now() + ms;
  while (performance.now() < end) {
    const start = performance.now();
    const body = { model: { source: `file://${model}` }, target: "cpu" };
    const { id } = await client.call("startCompression", { body });
    const { status } = await followJob(client, id);
    if (status !== "Completed") throw new Error(`Job ${id} ended ${status}`);
    times.push(performance.now() - start);
  }
  return times.toSorted((a, b) => a - b);
}

/** Asks for `/healthz` until it is stopped. */
function startProbes({ baseUrl }: Pick<RunningService, "baseUrl">): {
  /** @returns the milliseconds of each, in their order by time */
  readonly stop: () => Promise<number[]>;
} {
  const times: number[] = [];
  let isOver = false;
  const probe = async () => {
    while (!isOver) {
      const start = performance.now();
      await (await fetch(new URL("/healthz", baseUrl))).text();
      times.push(performance.now() - start);
      await delay(probeEveryMs);
    }
  };
  const ended = probe();
  return {
    async stop() {
      isOver = true;
      await ended;
      return times.toSorted((a, b) => a - b);
    },
  };
}

function pidOf({ process: { pid } }: { readonly process: ChildProcess }): number {
  if (pid === undefined) throw new Error("The process does not run");
  return pid;
}

async function readMebibytes(started: Pick<RunningService, "process">): Promise<number> {
  const status = await readFile(`/proc/${pidOf(started)}/status`, "utf8");
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) / 1024;
}

/** Of the process itself, without its workers. */
async function readCpuSeconds(started: Pick<RunningService, "process">): Promise<number> {
  const stat = await readFile(`/proc/${pidOf(started)}/stat`, "utf8");
  const [user, system] = stat
    .slice(stat.lastIndexOf(")") + 2)
    .split(" ")
    .slice(11, 13);
  return (Number(user) + Number(system)) / 100;
}

async function stopAttack(attack: ChildProcess): Promise<number> {
  const answered = once(attack, "message");
  attack.send("stop");
  const [sent] = await answered;
  return Number(sent);
}

function listTexts(value: unknown): string[] {
  if (typeof value === "string") return [value];
  if (typeof value !== "object" || value === null) return [];
  return Object.values(value).flatMap(listTexts);
}

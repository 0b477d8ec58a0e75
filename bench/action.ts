import assert from "node:assert/strict";
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createWriteStream } from "node:fs";
import { mkdtemp, open, readFile, rm, stat, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { z } from "zod";
import { listenLocally } from "../test/support/listen-locally.ts";
import { prepareRunner } from "../test/action/support/runner.ts";
import { startRunningService } from "../test/support/running-service.ts";
import { median } from "./median.ts";
import { readPeakOfProcess } from "../src/engine/runtime/read-peak-memory-bytes.ts";
import { type BenchRow, limitRow, reportBench } from "./result.ts";

const exec = promisify(execFile);
const recorder = join(import.meta.dirname, "action/record-requests.ts");
const bundle = join(import.meta.dirname, "../dist/index.js");
const starts = 11;
const uploadBytes = 2 ** 30;
const rounds = 3;

const recordedRequests = z.array(
  z.object({
    phase: z.enum(["begin", "end"]),
    method: z.string(),
    path: z.string(),
    at: z.number(),
  }),
);

await using cleanup = new AsyncDisposableStack();
const owner = { after: (work: () => unknown) => cleanup.defer(async () => void (await work())) };

const rows = [await measureStart(), await measureBundle(), ...(await measureUploads())];
await reportBench("action", rows);

async function measureStart(): Promise<BenchRow> {
  const server = createServer();
  const url = await listenLocally(owner, server);
  const runner = await prepareRunner(owner);
  await writeFile(join(runner.workspace, "model.onnx"), "");
  const inputs = { "service-url": url, token: "mos_none", models: "model.onnx", targets: "cpu" };
  const [ours, bare]: [number[], number[]] = [[], []];
  for (let count = 0; count < starts; count++) {
    for (const times of [ours, bare]) {
      const arrives = once(server, "request");
      const startedAt = performance.now();
      const step = times === ours ? await runner.start(inputs) : startBare(url);
      await arrives;
      times.push(performance.now() - startedAt);
      step.kill("SIGKILL");
    }
  }
  const row = limitRow(
    "start of the step to its first request; peer: of a Node program that does nothing else",
    "ms",
    median(ours),
    400,
  );
  return { ...row, peer: median(bare) };
}

function startBare(url: string): ChildProcess {
  return spawn(process.execPath, ["--eval", `require("node:http").get(${JSON.stringify(url)})`], {
    stdio: "ignore",
  });
}

async function measureBundle(): Promise<BenchRow> {
  return limitRow("bundle", "MB", (await stat(bundle)).size / 1e6, 3);
}

async function measureUploads(): Promise<BenchRow[]> {
  const service = await startRunningService(owner);
  // Without the scope to start jobs: the file is not a model.
  const { token } = await service.client.call("createToken", {
    body: { name: "bench", scopes: ["models:write", "jobs:read"] },
  });
  const runner = await prepareRunner(owner);
  const model = join(runner.workspace, "model.onnx");
  await writeRandomFile(model);
  const inputs = { "service-url": service.baseUrl, token, models: "model.onnx", targets: "cpu" };

  async function uploadByStep() {
    const timesFile = join(await temporaryFolder(), "requests");
    await writeFile(timesFile, "");
    const environment = { NODE_OPTIONS: `--import=${recorder}`, REQUEST_TIMES_FILE: timesFile };
    const startedAt = performance.timeOrigin + performance.now();
    const step = await runner.start(inputs, { environment });
    await step.untilLog(/model\.onnx: (uploaded|unchanged)/);
    const peakBytes = await readPeakOfProcess(step.pid);
    const { log } = await step.ended;
    const lines = (await readFile(timesFile, "utf8")).trim().split("\n");
    const puts = recordedRequests
      .parse(lines.map((line) => JSON.parse(line)))
      .filter(({ method }) => method === "PUT");
    const [begin, end] = puts;
    return {
      log,
      peakBytes,
      puts: puts.length,
      upload: (end?.at ?? 0) - (begin?.at ?? 0),
      all: (end?.at ?? 0) - startedAt,
    };
  }

  async function uploadByCurl() {
    const startedAt = performance.now();
    const { stdout } = await exec("sha256sum", [model]);
    const hashedAt = performance.now();
    const url = `${service.baseUrl}/models/${stdout.slice(0, 64)}`;
    await exec("curl", [
      "--fail",
      "--silent",
      "--upload-file",
      model,
      "--oauth2-bearer",
      token,
      url,
    ]);
    return { upload: performance.now() - hashedAt, all: performance.now() - startedAt };
  }

  const ours: Awaited<ReturnType<typeof uploadByStep>>[] = [];
  const curls: Awaited<ReturnType<typeof uploadByCurl>>[] = [];
  for (let round = 0; round < rounds; round++) {
    await changeContent(model);
    ours.push(await uploadByStep());
    await changeContent(model);
    curls.push(await uploadByCurl());
  }
  const again = await uploadByStep();
  assert.match(again.log, /model\.onnx: unchanged/);
  const speed = (times: readonly number[]) => uploadBytes / 1e6 / (median(times) / 1000);
  const compared = (what: string, part: "upload" | "all") => {
    const [own, peer] = [speed(ours.map((one) => one[part])), speed(curls.map((one) => one[part]))];
    return {
      what,
      unit: "MB/s",
      ours: own,
      peer,
      bar: "ours >= 0.9 x curl",
      met: own >= 0.9 * peer,
    };
  };
  return [
    compared("upload of 1 GiB", "upload"),
    compared("upload of 1 GiB from the start, with hashing", "all"),
    limitRow(
      "peak memory of the step",
      "MB",
      Math.max(...ours.map(({ peakBytes }) => peakBytes)) / 1e6,
      150,
    ),
    limitRow("uploads of a second run", "", again.puts, 0),
  ];
}

async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "bench-action-"));
  cleanup.defer(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

async function writeRandomFile(file: string): Promise<void> {
  const stream = createWriteStream(file);
  for (let left = uploadBytes; left > 0; left -= 2 ** 22)
    if (!stream.write(randomBytes(2 ** 22))) await once(stream, "drain");
  stream.end();
  await once(stream, "close");
}

/** The file then has a hash that the service does not know. */
async function changeContent(file: string): Promise<void> {
  await using opened = await open(file, "r+");
  await opened.write(randomBytes(32), 0, 32, 0);
}

import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Job } from "../src/contract/jobs/job.ts";
import { startRunningService } from "../test/support/running-service.ts";
import { prepareSyntheticModel, type SyntheticModel } from "./engine/prepare-synthetic-model.ts";
import { type BenchRow, limitRow, reportBench } from "./result.ts";

/**
 * A job on a model larger than the memory: the service and its workers in a control group of 4 GB,
 * which needs root. Arguments: the model and the gigabytes, to compare with a model that fits.
 */
const [, size = "10gb", gigabytes = "4"] = process.argv.slice(2);
const limitBytes = Number(gigabytes) * 1e9;

interface ControlGroup {
  readonly parent: string;
  readonly limit: string;
  readonly peak: string;
}

/** The memory controllers of both versions of control groups, the one that is mounted first. */
const controllers: readonly ControlGroup[] = [
  {
    parent: "/sys/fs/cgroup/memory",
    limit: "memory.limit_in_bytes",
    peak: "memory.max_usage_in_bytes",
  },
  { parent: "/sys/fs/cgroup", limit: "memory.max", peak: "memory.peak" },
];

const path = await prepareSyntheticModel(size as SyntheticModel);
const peakFile = await enterLimitedGroup();
await using cleanup = new AsyncDisposableStack();
const owner = { after: (work: () => unknown) => cleanup.defer(async () => void (await work())) };
const { client } = await startRunningService(owner, {
  environment: { MOS_ALLOWED_ROOTS: dirname(path) },
});
await reportBench("huge-job", await measure());

async function measure(): Promise<readonly BenchRow[]> {
  const start = performance.now();
  const { id } = await client.call("startCompression", {
    body: {
      model: { source: `file://${path}` },
      target: "cpu",
      recipe: { scheme: "int4-weight", evaluation: { level: "outputs", samples: 2 } },
    },
  });
  for await (const line of client.followLogs(id)) process.stdout.write(`  ${line.text}\n`);
  const seconds = (performance.now() - start) / 1000;
  const job = await client.call("getJob", { params: { id } });
  const peakBytes = Number(await readFile(peakFile, "utf8"));
  process.stdout.write(`${JSON.stringify(job.telemetry, undefined, 2)}\n`);
  return [
    limitRow(`${size} in ${gigabytes} GB ends ${job.status}`, "failures", countFailures(job), 0),
    limitRow("its memory, pages of files too", "GB", peakBytes / 1e9, Number(gigabytes)),
    figure("its time", "s", seconds),
    ...(job.telemetry.accuracy?.outputs ?? []).map(({ name, sqnrDb }) =>
      figure(`SQNR of "${name}"`, "dB", sqnrDb),
    ),
  ];
}

function countFailures({ status }: Job): number {
  return status === "Completed" ? 0 : 1;
}

function figure(what: string, unit: string, ours: number): BenchRow {
  return { what, unit, ours, peer: null, bar: "none", met: null };
}

/** Moves this process, and with it all that it starts, into a group of that much memory. */
async function enterLimitedGroup(): Promise<string> {
  for (const { parent, limit, peak } of controllers) {
    const group = join(parent, `huge-job-${process.pid}`);
    try {
      await mkdir(group);
      await writeFile(join(group, limit), String(limitBytes));
    } catch {
      continue;
    }
    await writeFile(join(group, "cgroup.procs"), String(process.pid));
    return join(group, peak);
  }
  throw new Error("No control group can be made: this needs root");
}

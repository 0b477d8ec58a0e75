import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { basename, join } from "node:path";
import { type RunningService, startRunningService } from "../test/support/running-service.ts";
import { measureFollowers } from "./api/follow-log.ts";
import { measureRequests, type RequestFigures } from "./api/measure-requests.ts";
import { rareEvery, seedJobs } from "./api/seed-jobs.ts";
import { startDatasette } from "./api/start-datasette.ts";
import { type BenchRow, limitRow, reportBench } from "./result.ts";

/**
 * The interface with many jobs, beside Datasette, which serves the same table of the same file as
 * JSON. Arguments: jobs, followers. Clients share the machine with the servers.
 */
const [, jobs = "100000", followers = "2000"] = process.argv.slice(2);
const seconds = 10;
const callers = 16;
const clockTicksPerSecond = 100;

/** Takes connections and does not answer: the one worker waits, and all other jobs with it. */
const silent = createServer().listen(0, "127.0.0.1");
await once(silent, "listening");
const { port } = silent.address() as AddressInfo;
const waiting = `http://127.0.0.1:${port}/model.onnx`;
const environment = {
  MOS_WORKERS: "1",
  MOS_ALLOW_PRIVATE_ADDRESSES: "true",
  MOS_QUOTAS: "{waitingJobs: 1000000, requestsPerMinute: 100000000}",
};
/** Each of the documented filters, and those together that are hard for an index. */
const filters = [
  "status=Failed",
  "kind=quantize",
  "target=cpu-int8",
  "kind=quantize&target=cpu&status=Completed",
  "kind=quantize&target=cpu-int8&status=Completed",
  "model=detector.onnx",
  "label=env&label=rare",
  `label=rare&limit=${Math.max(1, Math.floor(Number(jobs) / rareEvery))}`,
  "createdAfter=2026-01-01T00:00:00Z",
];

const stack = new AsyncDisposableStack();
const t = {
  after(run: () => Promise<void>) {
    stack.defer(run);
  },
};
const rows: BenchRow[] = [];
try {
  const service = await startSeeded();
  const database = join(service.directory, "service.sqlite");
  const origin = service.baseUrl.replace(/\/v1$/, "");
  const headers = { authorization: `Bearer ${service.token}` };

  // The code is warm before the first search, and nothing of the jobs is.
  await measureRequests(`${service.baseUrl}/targets`, { callers: 1, seconds: 1, headers });
  for (const filter of filters) {
    const { firstMs, p99Ms } = await measureRequests(`${service.baseUrl}/jobs?${filter}`, {
      callers: 1,
      seconds: 2,
      headers,
    });
    rows.push(
      limitRow(`GET /jobs?${filter}, one caller, first`, "ms", firstMs, 20),
      limitRow("the same, p99", "ms", p99Ms, 20),
    );
  }
  const ours = await measureRequests(`${service.baseUrl}/jobs`, { callers, seconds, headers });
  const peer = await measurePeer(database);
  rows.push(
    {
      what: `GET /jobs, ${jobs} jobs, ${callers} callers`,
      unit: "/s",
      ours: ours.perSecond,
      peer: peer.perSecond,
      bar: ">= 1500",
      met: ours.perSecond >= 1500,
    },
    { ...limitRow("the same, p99", "ms", ours.p99Ms, 20), peer: peer.p99Ms },
  );
  const created = await measureRequests(`${service.baseUrl}/compress`, {
    callers,
    seconds,
    headers: { ...headers, "content-type": "application/json" },
    method: "POST",
    body: JSON.stringify({ model: { source: waiting }, target: "cpu" }),
  });
  rows.push({
    what: `POST /compress, ${callers} callers`,
    unit: "/s",
    ours: created.perSecond,
    peer: null,
    bar: ">= 1000",
    met: created.perSecond >= 1000,
  });
  const followed = await measureFollowers({
    origin,
    token: service.token,
    database,
    followers: Number(followers),
    linesPerSecond: 100,
    seconds,
    cpuSeconds: () => readCpuSeconds(service.process.pid ?? Number.NaN),
  });
  rows.push(
    limitRow(`${followers} followers of a log, 100 lines/s, p99`, "ms", followed.p99Ms, 200),
    limitRow("the same, the service's processor time", "cores", followed.cores, 0.5),
    limitRow("the same, lines that did not arrive", "lines", followed.linesMissing, 0),
  );
  await reportBench("api", rows);
} finally {
  await stack.disposeAsync();
  silent.close();
}

async function measurePeer(database: string): Promise<RequestFigures> {
  await using datasette = await startDatasette(database);
  const table = `${datasette.origin}/${basename(database, ".sqlite")}/jobs.json`;
  const query = "_size=50&_sort_desc=id&_nocount=1&_nofacet=1&_col=document";
  return await measureRequests(`${table}?${query}`, { callers, seconds });
}

/** A service whose records have the jobs: it has made its token before. */
async function startSeeded(): Promise<RunningService> {
  const empty = await startRunningService(t, { environment });
  empty.process.kill("SIGTERM");
  await once(empty.process, "exit");
  await seedJobs(join(empty.directory, "service.sqlite"), Number(jobs));
  return startRunningService(t, { from: empty, environment });
}

async function readCpuSeconds(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) / clockTicksPerSecond;
}

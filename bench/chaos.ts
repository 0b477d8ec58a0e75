import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { createClient } from "../src/client/create-client.ts";
import { routes } from "../src/contract/routes.ts";
import { recordFinalizer, resourceLabels } from "../src/contract/resource-labels.ts";
import { isTerminal } from "../src/contract/status.ts";
import { connectCluster } from "../src/kubernetes/connect-cluster.ts";
import { type CompressionJobObject, compressionJobs } from "../src/resources/custom-resources.ts";
import { createReflector } from "../src/kubernetes/reflector.ts";
import { type Pod, resources, type Stored } from "../src/kubernetes/resources.ts";
import { startControlPlane } from "../test/support/cluster/control-plane.ts";
import { findFreePort } from "../test/support/cluster/find-free-port.ts";
import { startKwok } from "../test/support/cluster/kwok.ts";
import { podEndStage } from "../test/support/cluster/pod-end-stage.ts";
import { reportBench } from "./result.ts";
import { workerOutput } from "./worker-output.ts";

/**
 * Operator and service are killed repeatedly, at moments that follow from a seed, while jobs run on
 * simulated nodes. Afterwards every job must be done, have had one pod, and have every line of its
 * pod's log once.
 */
const [, killCount = "200", seed = "1"] = process.argv.slice(2);
const kills = Number(killCount);
const jobs = 50;
const namespace = "chaos";
const lease = "model-optimization-operator";
const lines = Array.from({ length: 40 }, (_, index) => `Line ${index + 1} of the worker`);
const maxLifeMs = 3_000;
const random = pseudoRandomNumbers(Number(seed));

await using controlPlane = await startControlPlane();
const endStages = [podEndStage({ delayMs: 500, maxDelayMs: 20_000 })];
await using _nodes = await startKwok(controlPlane, {
  nodes: 4,
  gpusPerNode: 8,
  endStages,
  logLines: workerOutput(lines),
});
const { kubeconfig } = controlPlane;
await controlPlane.kubectl(["create", "namespace", namespace]);
await controlPlane.kubectl([
  "create",
  "serviceaccount",
  "model-optimization-worker",
  `--namespace=${namespace}`,
]);
const directory = await mkdtemp(join(tmpdir(), "chaos-"));
const port = String(await findFreePort("127.0.0.1"));
const environment = {
  PATH: process.env["PATH"] ?? "",
  HOME: directory,
  KUBECONFIG: kubeconfig,
  MOS_KUBECONFIG: kubeconfig,
  MOS_NAMESPACE: namespace,
};
const programs = {
  operator: {
    args: [fileURLToPath(new URL("../operator/main.ts", import.meta.url))],
    env: {
      MOS_SERVICE_URL: "http://127.0.0.1:9",
      MOS_WORKER_IMAGE: "worker",
      MOS_HEALTH_PORT: "0",
    },
    stream: "stderr",
    greeting: "Leading",
  },
  service: {
    args: [fileURLToPath(new URL("../src/service/main.ts", import.meta.url))],
    env: { MOS_EXECUTOR: "cluster", MOS_DATA_DIR: directory, MOS_PORT: port },
    stream: "stdout",
    greeting: "Listening",
  },
} as const;

const client = await connectCluster({ kubeconfig }, { namespace });
const podUidsByJob = new Map<string, Set<string>>();
const recordPod = ({ metadata }: Stored<Pod>) => {
  const name = metadata.labels?.[resourceLabels.job] ?? "";
  podUidsByJob.set(name, (podUidsByJob.get(name) ?? new Set()).add(metadata.uid));
};
const onError = () => {};
const pods = createReflector({ client, type: resources.pods, onAdded: recordPod, onError });
await pods.synced;

let submitted = 0;
let killed = 0;
await submitDueJobs();
await Promise.all([killRepeatedly("operator", kills / 2), killRepeatedly("service", kills / 2)]);
const operator = await start("operator");
const service = await start("service");
const stuck = await waitForAllJobs();
await pods.stop();
const lost = await countWrongLogs();
const doubled = [...podUidsByJob.values()].filter((uids) => uids.size > 1).length;
await Promise.all([service.end("SIGTERM"), operator.end("SIGTERM")]);
await client.close();
await rm(directory, { recursive: true });
await reportBench("chaos", [
  row(`jobs of ${jobs} that are not Completed and recorded after ${killed} kills`, stuck),
  row("jobs with more than one pod", doubled),
  row(`jobs whose log is not the pod's ${lines.length} lines, each once`, lost),
]);

function row(what: string, ours: number) {
  return { what, unit: "jobs", ours, peer: null, bar: "0", met: ours === 0 };
}

/** Random numbers from 0 to 1 that are the same in every run with the seed. */
function* pseudoRandomNumbers(state: number): Generator<number, never> {
  for (;;) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    yield state / 2 ** 32;
  }
}

async function start(name: keyof typeof programs) {
  const { args, env, stream, greeting } = programs[name];
  const child = spawn(process.execPath, args, {
    env: { ...environment, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  child[stream === "stdout" ? "stderr" : "stdout"].resume();
  const exited = once(child, "exit");
  const greeted = Promise.withResolvers<void>();
  createInterface(child[stream]).on("line", (line) => {
    if (line.includes(greeting)) greeted.resolve();
  });
  const hasExited = await Promise.race([
    greeted.promise.then(() => false),
    exited.then(() => true),
  ]);
  if (hasExited) throw new Error(`The ${name} ended before it worked`);
  return {
    async end(signal: "SIGKILL" | "SIGTERM") {
      child.kill(signal);
      await exited;
    },
  };
}

async function killRepeatedly(name: keyof typeof programs, times: number): Promise<void> {
  for (let time = 0; time < times; time++) {
    const program = await start(name);
    await delay(random.next().value * maxLifeMs);
    await program.end("SIGKILL");
    killed++;
    await submitDueJobs();
    if (killed % 20 === 0)
      process.stdout.write(
        `${killed} kills, ${podUidsByJob.size} of ${submitted} jobs have a pod\n`,
      );
    // The next operator then does not wait until the Lease of the killed one expires.
    if (name === "operator")
      await controlPlane.kubectl(["delete", "lease", lease, "-n", namespace]);
  }
}

/** A job for every few kills, so that at any time there are jobs in every status. */
async function submitDueJobs(): Promise<void> {
  while (submitted < jobs && submitted * kills <= killed * jobs) {
    const job: CompressionJobObject = {
      metadata: { name: `job-${submitted++}` },
      spec: {
        kind: "compress",
        model: { source: "https://models.example/model.onnx" },
        target: "cpu",
        dryRun: false,
        cancel: false,
        suspend: false,
      },
    };
    await client.create(compressionJobs, job);
  }
}

/** The number of jobs that are not done after a minute in which none was finished. */
async function waitForAllJobs(): Promise<number> {
  const patienceMs = 60_000;
  let done = -1;
  for (let since = performance.now(); performance.now() - since < patienceMs; await delay(500)) {
    const all = (await Array.fromAsync(client.list(compressionJobs))).flatMap(({ items }) => items);
    const now = all.filter(isDone).length;
    if (now === jobs) return 0;
    if (now > done) since = performance.now();
    done = Math.max(done, now);
  }
  return jobs - done;
}

function isDone({ status, metadata }: Stored<CompressionJobObject>): boolean {
  return status?.status === "Completed" && !metadata.finalizers?.includes(recordFinalizer);
}

async function countWrongLogs(): Promise<number> {
  const args = [
    ...programs.service.args,
    "token",
    "create",
    "--name",
    "chaos",
    "--scopes",
    "admin",
  ];
  const child = spawn(process.execPath, args, { env: { ...environment, ...programs.service.env } });
  const [token = ""] = await Array.fromAsync(createInterface(child.stdout));
  const rest = createClient({ routes, baseUrl: `http://127.0.0.1:${port}/v1`, token });
  const page = await rest.call("listJobs", { query: { limit: "200" } });
  let right = 0;
  for (const job of page.jobs) {
    if (!isTerminal(job.status)) continue;
    const received: string[] = [];
    for await (const line of rest.followLogs(job.id)) received.push(line.text);
    if (received.join("\n") === lines.join("\n")) right++;
    else process.stdout.write(`${job.name}: ${received.length} lines\n`);
  }
  return jobs - right;
}

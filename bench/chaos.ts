import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient } from "../src/client/create-client.ts";
import { routes } from "../src/contract/routes/routes.ts";
import { connectCluster } from "../src/kubernetes/connect-cluster.ts";
import { createReflector } from "../src/kubernetes/reflector.ts";
import { type Pod, resources, type Stored } from "../src/kubernetes/resources.ts";
import { startControlPlane } from "../test/support/cluster/control-plane.ts";
import { workerServiceAccount } from "../test/support/cluster/pod-token.ts";
import { breakProgram } from "./chaos/break-program.ts";
import { countWrongRecords } from "./chaos/count-wrong-records.ts";
import { findWrongLogs } from "./chaos/find-wrong-logs.ts";
import { loseNode } from "./chaos/lose-node.ts";
import { type Fault, planFaults } from "./chaos/plan-faults.ts";
import { PlayedWorkers } from "./chaos/played-workers.ts";
import { PodHistory } from "./chaos/pod-history.ts";
import { serveLogs } from "./chaos/serve-logs.ts";
import { SimulatedNode } from "./chaos/simulated-node.ts";
import { startPrograms } from "./chaos/start-programs.ts";
import { SubmittedJobs } from "./chaos/submitted-jobs.ts";
import { type BenchRow, limitRow, reportBench } from "./result.ts";

/**
 * Kills operator and service, cuts their networks and takes nodes away, as a seed says, while jobs
 * run. Afterwards every job must be done, with one result and every line of its log once; where a
 * node took lines with it, a line says so. Arguments: number of faults, seed.
 */
const [, faultCount = "200", seed = "1"] = process.argv.slice(2);
const nodeCount = 4;
const faultsPerJob = 4;
const namespace = "chaos";
const faults = planFaults(Number(faultCount), Number(seed), nodeCount);

await using controlPlane = await startControlPlane();
const { kubeconfig, kubectl } = controlPlane;
await kubectl(["create", "namespace", namespace]);
await kubectl(["create", "serviceaccount", workerServiceAccount, `--namespace=${namespace}`]);
const directory = await mkdtemp(join(tmpdir(), "chaos-"));
const client = await connectCluster({ kubeconfig }, { namespace });
const programs = await startPrograms({ cluster: controlPlane, namespace, directory });
const nodes: SimulatedNode[] = [];
const { serviceUrl } = programs;
const workers = new PlayedWorkers({ cluster: controlPlane, client, nodes, serviceUrl });
using logServer = await serveLogs(controlPlane, workers.findLog);
await using cleanup = new AsyncDisposableStack();
for (let index = 0; index < nodeCount; index++) {
  const node = await SimulatedNode.start(controlPlane, `chaos-${index}`, logServer.port);
  nodes.push(cleanup.use(node));
}
const history = new PodHistory();
const observePod = (pod: Stored<Pod>) => {
  history.observe(pod);
  workers.observe(pod);
};
const pods = createReflector({
  client,
  type: resources.pods,
  onAdded: observePod,
  onUpdated: observePod,
  onDeleted(pod) {
    history.remove(pod);
    workers.remove(pod);
  },
  onError: (error) => process.stdout.write(`${String(error)}\n`),
});
await pods.synced;

const jobs = new SubmittedJobs(client, Math.ceil(faults.length / faultsPerJob));
let happened = 0;
const start = performance.now();
await jobs.submitDue(0);
await Promise.all(Object.values(Object.groupBy(faults, ({ target }) => target)).map(causeInTurn));
const seconds = (performance.now() - start) / 1000;
const done = await jobs.waitForAll();
const rest = createClient({
  routes,
  baseUrl: `${serviceUrl}/v1`,
  token: await programs.createToken(),
});
const wrong = await findWrongLogs(rest, done, { pods: history, workers });
for (const { name, id } of wrong) process.stdout.write(`The log of ${name} is wrong, ${id}\n`);
const wrongRecords = await countWrongRecords(rest, done);
await pods.stop();
await programs.end();
await client.close();
const duplicated = history.countDuplicated();
const isRight = done.length === jobs.count && duplicated + wrongRecords + wrong.length === 0;
if (isRight) await rm(directory, { recursive: true });
else process.stdout.write(`Records and logs of the programs: ${directory}\n`);
await reportBench("chaos", [
  countRow("kills of operator and service", countFaults("kill")),
  countRow("network cuts of operator and service", countFaults("cut")),
  countRow("node losses", countFaults("node loss")),
  { ...countRow("time of a fault", seconds / faults.length), unit: "s" },
  countRow("jobs", jobs.count),
  limitRow("jobs lost: not Completed and recorded", "jobs", jobs.count - done.length, 0),
  limitRow("jobs duplicated: two pods or results at once", "jobs", duplicated, 0),
  limitRow("records that are missing, doubled or not Completed", "jobs", wrongRecords, 0),
  limitRow("jobs with a wrong log", "jobs", wrong.length, 0),
]);

async function causeInTurn(ofTarget: readonly Fault[]): Promise<void> {
  for (const fault of ofTarget) {
    await cause(fault);
    happened++;
    await jobs.submitDue(happened / faults.length);
    if (happened % 20 > 0) continue;
    process.stdout.write(`${happened} faults, ${history.jobsWithPods} of ${jobs.count} jobs run\n`);
  }
}

async function cause(fault: Fault): Promise<void> {
  if (fault.kind !== "node loss") return breakProgram(programs[fault.target], fault);
  const node = nodes[fault.node];
  if (node !== undefined) await loseNode(client, node, fault);
}

function countFaults(kind: Fault["kind"]): number {
  return faults.filter((fault) => fault.kind === kind).length;
}

function countRow(what: string, count: number): BenchRow {
  return { what, unit: "", ours: count, peer: null, bar: "none", met: null };
}

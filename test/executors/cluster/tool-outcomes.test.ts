import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { after } from "node:test";
import { promisify } from "node:util";
import { stringify } from "yaml";
import { z } from "zod";
import { apiVersion } from "../../../src/contract/custom-resources/api-group.ts";
import { slowestDownload } from "../../../src/contract/limits.ts";
import { helm } from "../../charts/helm.ts";
import {
  clusterMissing,
  healthMissing,
  helmMissing,
} from "../../support/cluster/cluster-missing.ts";
import { type ControlPlane, startControlPlane } from "../../support/cluster/control-plane.ts";
import { programPath } from "../../support/cluster/programs.ts";
import { listenLocally } from "../../support/listen-locally.ts";
import { realModel } from "../../support/real-models.ts";
import { startInstallation } from "./installation.ts";

const skip = clusterMissing || helmMissing || healthMissing;
const run = promisify(execFile);
const healthScript = join(import.meta.dirname, "../../../docs/argo-cd/health.lua");
/** Of `helm install --wait`: short where it shall be over, else no reason for a busy machine to fail. */
const waitSeconds = { "timed out": 3, deployed: 240, failed: 240 };

type Kind = "CompressionJob" | "Batch";

/** What tools make of a resource, each in its own words. */
interface Opinions {
  /** Conditions that `kubectl wait` finds. */
  readonly kubectl: readonly string[];
  readonly kstatus: "Current" | "Failed" | "InProgress";
  readonly argoCd: "Healthy" | "Degraded" | "Suspended" | "Progressing";
  /** How `helm install --wait` ends. */
  readonly helm: "deployed" | "failed" | "timed out";
}

const completed: Opinions = {
  kubectl: ["Complete", "Finished", "Ready"],
  kstatus: "Current",
  argoCd: "Healthy",
  helm: "deployed",
};
const failed: Opinions = {
  kubectl: ["Failed", "Finished", "Stalled"],
  kstatus: "Failed",
  argoCd: "Degraded",
  helm: "failed",
};
const cancelled: Opinions = { ...failed, kubectl: ["Finished", "Stalled"] };
const inProgress: Opinions = {
  kubectl: [],
  kstatus: "InProgress",
  argoCd: "Progressing",
  helm: "timed out",
};
const suspended: Opinions = { ...inProgress, kubectl: ["Suspended"], argoCd: "Suspended" };

interface Outcome {
  readonly name: string;
  readonly spec?: object;
  /** Its model's download goes on and on: the job is at work, and takes hardly any processor. */
  readonly isSlow?: true;
  readonly labels?: Readonly<Record<string, string>>;
  /** Patched into the spec once the status is there. */
  readonly change?: { readonly at: string; readonly spec: object };
  /** `kubectl wait --for` until which the state is there. */
  readonly until: string;
  readonly opinions: Opinions;
}

const quick = { recipe: { evaluation: { level: "none" } } };
const queue = { "kueue.x-k8s.io/queue-name": "none" };

function status(word: string) {
  return `jsonpath={.status.status}=${word}`;
}

/** The same for both kinds, whose specs differ only in the names of models and targets. */
const outcomes: readonly Outcome[] = [
  { name: "completed", until: status("Completed"), opinions: completed },
  {
    name: "edited",
    change: { at: status("Completed"), spec: { ttlSecondsAfterFinished: 3600 } },
    until: "jsonpath={.status.observedGeneration}=2",
    opinions: completed,
  },
  {
    name: "failed",
    spec: { model: { source: "file:///none.onnx" } },
    until: status("Failed"),
    opinions: failed,
  },
  {
    name: "cancelled",
    spec: { suspend: true },
    change: { at: "condition=Suspended", spec: { cancel: true } },
    until: status("Cancelled"),
    opinions: cancelled,
  },
  { name: "suspended", spec: { suspend: true }, until: "condition=Suspended", opinions: suspended },
  {
    name: "waiting",
    labels: queue,
    until: "jsonpath={.status.observedGeneration}=1",
    opinions: inProgress,
  },
  { name: "running", isSlow: true, until: status("Sharding"), opinions: inProgress },
];

let controlPlane: ControlPlane;
after(() => controlPlane.stop());

const kinds = ["CompressionJob", "Batch"] as const satisfies readonly Kind[];

/** The word of a batch for that of a job. */
const batchWords: Readonly<Record<string, string>> = { Sharding: "Running" };

test(
  "tools that wait for any resource agree on the outcomes of jobs and batches",
  {
    skip,
  },
  async (t) => {
    controlPlane = await startControlPlane();
    const settings = { MOS_ALLOW_PRIVATE_ADDRESSES: "true" };
    const { service } = await startInstallation(t, controlPlane, { settings });
    const slowHost = await listenLocally(t, createServer(drip));
    const { source } = await service.client.uploadModel(realModel("ocr-orientation"));
    const folder = await mkdtemp(join(tmpdir(), "outcomes-"));
    t.after(() => rm(folder, { recursive: true }));
    const kubectl = (args: readonly string[], input?: string) =>
      controlPlane.kubectl(["-n", service.namespace, ...args], input);

    const bring = async (kind: Kind, outcome: Outcome) => {
      const { name, spec = {}, isSlow, labels = {}, change, until } = outcome;
      const model = { source: isSlow ? `${slowHost}/net.onnx` : source };
      const job = { model, target: "cpu", ...quick, ...spec };
      const resource = { apiVersion, kind, metadata: { name, labels }, spec: specFor(kind, job) };
      await kubectl(["create", "-f", "-"], JSON.stringify(resource));
      const wait = (condition: string) => {
        const words = kind === "Batch" ? replaceWords(condition) : condition;
        return kubectl(["wait", `${kind}/${name}`, `--for=${words}`, "--timeout=240s"]);
      };
      if (change !== undefined) {
        await wait(change.at);
        const patch = JSON.stringify({ spec: change.spec });
        await kubectl(["patch", `${kind}/${name}`, "--type=merge", `--patch=${patch}`]);
      }
      await wait(until);
      return resource;
    };
    const install = async (
      resource: Awaited<ReturnType<typeof bring>>,
      expected: Opinions["helm"],
    ) => {
      const name = `${resource.kind}-${resource.metadata.name}`.toLowerCase();
      const chart = await writeChart(join(folder, name), resource);
      const flags = [
        `--namespace=${service.namespace}`,
        "--take-ownership",
        "--wait",
        `--timeout=${waitSeconds[expected]}s`,
      ];
      return helm(["install", name, chart, ...flags], controlPlane.kubeconfig).then(
        () => "deployed",
        (error: unknown) => (/deadline/.test(String(error)) ? "timed out" : "failed"),
      );
    };

    for (const kind of kinds) {
      const resources = await Promise.all(outcomes.map((outcome) => bring(kind, outcome)));
      const live = await kubectl(["get", kind, "-o", "json"]);
      const health = await readHealth(live);
      const installed = await Promise.all(
        outcomes.flatMap(({ opinions }, index) => {
          const resource = resources[index];
          return resource === undefined ? [] : install(resource, opinions.helm);
        }),
      );
      for (const [index, { name, opinions }] of outcomes.entries()) {
        await t.test(`${kind} ${name}`, () => {
          const { argoCd, kstatus } = health.get(name) ?? {};
          const found = {
            kubectl: trueConditions(live, name),
            kstatus,
            argoCd,
            helm: installed[index],
          };
          assert.deepEqual(found, opinions);
        });
      }
    }
  },
);

/** Sends fast enough for the service not to give it up. */
function drip(_: unknown, response: ServerResponse): void {
  const piece = Buffer.alloc(slowestDownload.bytes / 8);
  const timer = setInterval(() => response.write(piece), 1000);
  response.once("close", () => clearInterval(timer));
}

function specFor(
  kind: Kind,
  { model, target, ...rest }: Readonly<Record<string, unknown>>,
): object {
  return kind === "Batch"
    ? { models: [model], targets: [target], ...rest }
    : { model, target, ...rest };
}

function replaceWords(condition: string): string {
  return condition.replace(/(?<=\.status\.status}=)\w+/, (word) => batchWords[word] ?? word);
}

/** A chart of nothing but the resource. */
async function writeChart(folder: string, resource: { kind: Kind }): Promise<string> {
  await mkdir(join(folder, "templates"), { recursive: true });
  const about = { apiVersion: "v2", name: resource.kind.toLowerCase(), version: "0.1.0" };
  await writeFile(join(folder, "Chart.yaml"), stringify(about));
  await writeFile(join(folder, "templates/resource.yaml"), stringify(resource));
  return folder;
}

const healthLine = z.object({
  name: z.string(),
  kstatus: z.string(),
  argoCd: z.string(),
});

/** What kstatus and the health script say of each object, by its name. */
async function readHealth(list: string): Promise<Map<string, z.infer<typeof healthLine>>> {
  const answer = run(await programPath("resource-health"), [healthScript]);
  answer.child.stdin?.end(list);
  const { stdout } = await answer;
  const lines = stdout.trim().split("\n");
  const parsed = lines.map((line) => healthLine.parse(JSON.parse(line)));
  return new Map(parsed.map((health) => [health.name, health]));
}

const resourceList = z.object({
  items: z.array(
    z.object({
      metadata: z.object({ name: z.string(), generation: z.number() }),
      status: z.object({
        conditions: z.array(
          z.object({ type: z.string(), status: z.string(), observedGeneration: z.number() }),
        ),
      }),
    }),
  ),
});

/** Of those for the present generation, as `kubectl wait --for=condition=…` does. */
function trueConditions(list: string, name: string): string[] {
  const { items } = resourceList.parse(JSON.parse(list));
  const found = items.find(({ metadata }) => metadata.name === name);
  const conditions = found?.status.conditions ?? [];
  return conditions
    .filter(({ observedGeneration }) => observedGeneration === found?.metadata.generation)
    .filter(({ type, status: value }) => value === "True" && !internalConditions.has(type))
    .map(({ type }) => type)
    .toSorted();
}

const internalConditions: ReadonlySet<string> = new Set(["Scheduled"]);

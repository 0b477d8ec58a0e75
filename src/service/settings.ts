import { delimiter, resolve } from "node:path";
import { z } from "zod";
import { quotas } from "../contract/limits.ts";
import { number, text } from "../settings/environment-values.ts";

/** Every environment variable that the service reads. */
export const settings = z.object({
  MOS_HOST: text.default("127.0.0.1").describe("Address to listen on."),
  MOS_PORT: number
    .pipe(z.int().max(65_535))
    .default(8080)
    .describe("Port to listen on; 0 takes a free one."),
  MOS_DATA_DIR: text.default("./data").describe("Folder of everything that the service keeps."),
  MOS_WORKERS: number
    .pipe(z.int().min(1).max(1024))
    .optional()
    .describe("Jobs that are worked on at once; without it one for every two cores."),
  MOS_QUOTA_WAITING_JOBS: number
    .pipe(z.int().min(1))
    .default(quotas.waitingJobs)
    .describe("Jobs of a project that may wait when more are requested."),
  MOS_QUOTA_REQUESTS_PER_MINUTE: number
    .pipe(z.int().min(1))
    .default(quotas.requestsPerMinute)
    .describe("Requests of a project a minute."),
  MOS_QUOTA_EXCHANGES_PER_MINUTE: number
    .pipe(z.int().min(1))
    .default(quotas.exchangesPerMinute)
    .describe("Exchanges of identity tokens by one address a minute; a proxy is one address."),
  MOS_DEADLINE_SECONDS: number
    .pipe(z.int().min(1).max(604_800))
    .default(86_400)
    .describe(
      [
        "Seconds of work after which a job without a deadline of its own is stopped;",
        "in a cluster the operator's setting counts.",
      ].join(" "),
    ),
  MOS_PROJECT_WEIGHTS: z
    .string()
    .default("")
    .transform(parseWeights)
    .describe(
      [
        "Jobs of a project that start for each job of another one, such as `team-a=3,team-b=2`;",
        "projects that are left out have 1. In a cluster a queue of Kueue decides instead.",
      ].join(" "),
    ),
  MOS_MAX_MODEL_BYTES: number
    .pipe(z.int().min(1))
    .default(64 * 1024 ** 3)
    .describe("Largest model, bytes."),
  MOS_ALLOWED_ROOTS: z
    .string()
    .default("")
    .transform(splitPathList)
    .describe(
      [
        "Folders under which `file://` models may lie,",
        "separated by colons; without it there are none.",
      ].join(" "),
    ),
  MOS_ALLOW_PRIVATE_ADDRESSES: z
    .enum(["true", "false"])
    .default("false")
    .transform((allowed) => allowed === "true")
    .describe(
      [
        "Whether models may come from `http://` and from",
        "addresses that are not on the public internet.",
      ].join(" "),
    ),
  MOS_TARGETS_FILE: text
    .optional()
    .describe(
      [
        "YAML file of the targets, in the form of the answer to `GET /targets`;",
        "without it there are built-in ones.",
      ].join(" "),
    ),
  MOS_TRUST_POLICY_FILE: text
    .optional()
    .describe(
      [
        "YAML file that says whose OpenID Connect identity tokens are",
        "exchanged for access tokens; without it none are.",
      ].join(" "),
    ),
  MOS_GITHUB_APP_ID: z
    .string()
    .regex(/^\d+$/, { error: "must be a number" })
    .optional()
    .describe(
      [
        "Number of the GitHub App that the service reports as;",
        "without it batches cannot ask for a report.",
      ].join(" "),
    ),
  MOS_GITHUB_APP_KEY_FILE: text.optional().describe("PEM file with the GitHub App's private key."),
  MOS_GITHUB_WEBHOOK_SECRET_FILE: text
    .optional()
    .describe(
      "File with the secret of the GitHub App's webhook, which leads to `/github/webhook`.",
    ),
  MOS_GITHUB_API_URL: z
    .url({ protocol: /^https?$/ })
    .default("https://api.github.com")
    .describe("GitHub's REST interface; that of GitHub Enterprise Server ends in `/api/v3`."),
  MOS_EXECUTOR: z
    .enum(["local", "cluster"])
    .default("local")
    .describe("Who works on jobs: processes on this machine, or pods of a Kubernetes cluster."),
  MOS_NAMESPACE: text
    .optional()
    .describe(
      [
        "Namespace of the custom resources;",
        "without it the pod's own, or that of the kubeconfig's context.",
      ].join(" "),
    ),
  MOS_KUBECONFIG: text
    .optional()
    .describe("File with the access to the cluster, for a service that runs outside of it."),
  MOS_WORKER_SERVICE_ACCOUNT: text
    .default("model-optimization-worker")
    .describe("Service account of worker pods: the service refuses all others."),
  MOS_RESOURCE_TTL_SECONDS: number
    .pipe(z.int().max(31_536_000))
    .default(86_400)
    .describe(
      [
        "Seconds after a job's end at which a custom resource",
        "that was created for a REST request is deleted.",
      ].join(" "),
    ),
  KUBERNETES_SERVICE_HOST: text.optional().describe("Set by Kubernetes in every pod."),
  KUBERNETES_SERVICE_PORT: text.optional().describe("Set by Kubernetes in every pod."),
});
export type Settings = z.infer<typeof settings>;

function parseWeights(list: string, context: z.RefinementCtx): ReadonlyMap<string, number> {
  const entries = list.split(",").filter((entry) => entry !== "");
  const pairs = entries.map((entry) => /^([^=]+)=([1-9]\d{0,2})$/.exec(entry.trim()));
  if (pairs.includes(null)) {
    context.addIssue("must be a list of NAME=WEIGHT, with weights from 1 to 999");
  }
  return new Map(pairs.map((pair) => [pair?.[1] ?? "", Number(pair?.[2])]));
}

function splitPathList(list: string): string[] {
  const paths = list.split(delimiter).filter((path) => path !== "");
  return paths.map((path) => resolve(path));
}

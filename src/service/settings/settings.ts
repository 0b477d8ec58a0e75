import { delimiter, resolve } from "node:path";
import { z } from "zod";
import { quotaSettings } from "./quota-settings.ts";
import { sourceSettings, storageSettings } from "./storage-settings.ts";
import { tracingSettings } from "./tracing-settings.ts";
import { namespaceList, number, parseNetworks, text } from "../../settings/parse-environment.ts";

/** An origin: pages, sign-ins and cookies have no place below a path. */
const publicUrl = z
  .url({ protocol: /^https?$/ })
  .refine((address) => new URL(address).href === `${new URL(address).origin}/`, {
    error: "must be an address without a path, such as https://mos.example",
  })
  .transform((address) => new URL(address).origin);

/** Every environment variable that the service reads. */
export const settings = z.object({
  MOS_HOST: text
    .default("127.0.0.1")
    .describe("Address to listen on; `*` is every one, IPv6 and IPv4."),
  MOS_PORT: number
    .pipe(z.int().max(65_535))
    .default(8080)
    .describe("Port to listen on; 0 takes a free one."),
  MOS_HEALTH_PORT: number
    .pipe(z.int().max(65_535))
    .optional()
    .describe(
      "Port of its own for `/healthz`, `/readyz` and `/metrics`, which is not public then.",
    ),
  MOS_WORKER_PORT: number
    .pipe(z.int().max(65_535))
    .optional()
    .describe(
      [
        "Port of its own for workers, whose requests `MOS_PORT` does not answer then;",
        "0 takes a free one.",
      ].join(" "),
    ),
  MOS_STOP_DELAY_SECONDS: number
    .pipe(z.int().max(300))
    .default(0)
    .describe(
      [
        "Seconds for which a service that is asked to stop answers requests still, until load",
        "balancers send them to other replicas.",
      ].join(" "),
    ),
  MOS_TLS_DIR: text
    .optional()
    .describe(
      [
        "Folder with `tls.crt`, the certificate with its chain in the form of PEM, and `tls.key`, its",
        "private key, as of a Secret: the service answers `https` on `MOS_PORT` and",
        "`MOS_WORKER_PORT` then, else `http`. They are read again when they change.",
      ].join(" "),
    ),
  MOS_FIRST_SIGN_IN_FILE: text
    .optional()
    .describe(
      [
        "File with a secret of 43 letters, digits, `-` or `_`, with which the first administrator",
        "signs in once, at `/sign-in#SECRET`; it counts until somebody with a role has signed in.",
      ].join(" "),
    ),
  MOS_TRUSTED_PROXIES: z
    .string()
    .default("")
    .transform((list, context) => {
      const isTrusted = parseNetworks(list);
      if (isTrusted === undefined) {
        context.addIssue("must be a list of addresses and networks such as 10.0.0.0/8");
      }
      return isTrusted ?? (() => false);
    })
    .describe(
      [
        "Addresses and networks of proxies, separated by commas: `X-Forwarded-For` counts only in",
        "their requests, and limits of connections by address do not hold for them.",
      ].join(" "),
    ),
  MOS_DATA_DIR: text.default("./data").describe("Folder of everything that the service keeps."),
  ...storageSettings,
  MOS_WORKERS: number
    .pipe(z.int().min(1).max(1024))
    .optional()
    .describe("Jobs that are worked on at once; without it one for every two cores."),
  ...quotaSettings,
  ...sourceSettings,
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
        "Folders under which `file://` models may lie, separated by colons; without it there are",
        "none. On one machine each has to be there at the start; in a cluster pods have them.",
      ].join(" "),
    ),
  MOS_ALLOW_PRIVATE_ADDRESSES: z
    .enum(["true", "false"])
    .default("false")
    .transform((allowed) => allowed === "true")
    .describe(
      [
        "Whether models may come from, and events be sent to, `http://` and",
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
  MOS_PUBLIC_URL: publicUrl
    .optional()
    .describe(
      [
        "Address at which people reach the service, without a path, for links in check runs and to",
        "artifacts; with `https` cookies are sent only over TLS.",
      ].join(" "),
    ),
  MOS_OIDC_FILE: text
    .optional()
    .describe(
      [
        "YAML file of the OpenID Connect provider at which people sign in;",
        "without it they do by links.",
      ].join(" "),
    ),
  MOS_GITHUB_APP_FILE: text
    .optional()
    .describe(
      [
        "YAML file of the GitHub App that the service reports as;",
        "without it batches cannot ask for a report.",
      ].join(" "),
    ),
  MOS_EXECUTOR: z
    .enum(["local", "cluster"])
    .default("local")
    .describe("Who works on jobs: processes on this machine, or pods of a Kubernetes cluster."),
  MOS_NAMESPACE: text
    .optional()
    .describe(
      [
        "Namespace of the service, whose custom resources are those of the project `default`;",
        "without it the pod's own, or that of the kubeconfig's context.",
      ].join(" "),
    ),
  MOS_NAMESPACES: namespaceList.describe(
    [
      "Other namespaces of custom resources, each the project of its name, separated by commas;",
      "`*` is every one.",
    ].join(" "),
  ),
  MOS_SERVICE_ACCOUNT_CALLERS: z
    .enum(["true", "false"])
    .default("false")
    .transform((allowed) => allowed === "true")
    .describe(
      [
        "Whether programs of the cluster call the service by tokens of their ServiceAccounts, as",
        "far as Kubernetes lets them; only with `MOS_EXECUTOR=cluster`.",
      ].join(" "),
    ),
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
  ...tracingSettings,
  KUBECONFIG: text
    .optional()
    .describe("File with the access to the cluster, for a service that runs outside of it."),
  KUBERNETES_SERVICE_HOST: text.optional().describe("Set by Kubernetes in every pod."),
  KUBERNETES_SERVICE_PORT: text.optional().describe("Set by Kubernetes in every pod."),
});
export type Settings = z.infer<typeof settings>;

function splitPathList(list: string): string[] {
  const paths = list.split(delimiter).filter((path) => path !== "");
  return paths.map((path) => resolve(path));
}

import { delimiter, resolve } from "node:path";
import { z } from "zod";

const number = z
  .string()
  .regex(/^\d{1,15}$/, { error: "must be a whole number" })
  .transform(Number);

/** Every environment variable that the service reads. */
export const settings = z.object({
  MOS_HOST: z.string().min(1).default("127.0.0.1").describe("Address to listen on."),
  MOS_PORT: number
    .pipe(z.int().max(65_535))
    .default(8080)
    .describe("Port to listen on; 0 takes a free one."),
  MOS_DATA_DIR: z
    .string()
    .min(1)
    .default("./data")
    .describe("Folder of everything that the service keeps."),
  MOS_WORKERS: number
    .pipe(z.int().min(1).max(1024))
    .optional()
    .describe("Jobs that are worked on at once; without it one for every two cores."),
  MOS_MAX_MODEL_BYTES: number
    .pipe(z.int().min(1))
    .default(64 * 1024 ** 3)
    .describe("Largest model, bytes."),
  MOS_ALLOWED_ROOTS: z
    .string()
    .default("")
    .transform((list) =>
      list
        .split(delimiter)
        .filter((root) => root !== "")
        .map((root) => resolve(root)),
    )
    .describe(
      "Folders under which `file://` models may lie, separated by colons; without it there are none.",
    ),
  MOS_ALLOW_PRIVATE_ADDRESSES: z
    .enum(["true", "false"])
    .default("false")
    .transform((allowed) => allowed === "true")
    .describe(
      "Whether models may come from `http://` and from addresses that are not on the public internet.",
    ),
  MOS_TARGETS_FILE: z
    .string()
    .min(1)
    .optional()
    .describe(
      "YAML file of the targets, in the form of the answer to `GET /targets`; without it there are built-in ones.",
    ),
  MOS_TRUST_POLICY_FILE: z
    .string()
    .min(1)
    .optional()
    .describe(
      "YAML file that says whose OpenID Connect identity tokens are exchanged for access tokens; without it nobody's.",
    ),
  MOS_GITHUB_APP_ID: z
    .string()
    .regex(/^\d+$/, { error: "must be a number" })
    .optional()
    .describe(
      "Number of the GitHub App that the service reports as; without it batches cannot ask for a report.",
    ),
  MOS_GITHUB_APP_KEY_FILE: z
    .string()
    .min(1)
    .optional()
    .describe("PEM file with the GitHub App's private key."),
  MOS_GITHUB_WEBHOOK_SECRET_FILE: z
    .string()
    .min(1)
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
  MOS_NAMESPACE: z
    .string()
    .min(1)
    .optional()
    .describe(
      "Namespace of the custom resources; without it the pod's own, or that of the kubeconfig's context.",
    ),
  MOS_KUBECONFIG: z
    .string()
    .min(1)
    .optional()
    .describe("File with the access to the cluster, for a service that runs outside of it."),
  MOS_WORKER_SERVICE_ACCOUNT: z
    .string()
    .min(1)
    .default("model-optimization-worker")
    .describe("Service account of worker pods: the service refuses all others."),
  MOS_RESOURCE_TTL_SECONDS: number
    .pipe(z.int().max(31_536_000))
    .default(86_400)
    .describe(
      "Seconds after a job's end at which a custom resource that was made for a REST request is deleted.",
    ),
  KUBERNETES_SERVICE_HOST: z.string().min(1).optional().describe("Set by Kubernetes in every pod."),
  KUBERNETES_SERVICE_PORT: z.string().min(1).optional().describe("Set by Kubernetes in every pod."),
});
export type Settings = z.infer<typeof settings>;

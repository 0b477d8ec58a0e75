import { execFile } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { z } from "zod";
import { programPath } from "./programs.ts";

const exec = promisify(execFile);
const maxOutputBytes = 256 * 1024 * 1024;

/** What it takes to talk to a cluster as its administrator. */
export interface Cluster {
  readonly url: string;
  readonly adminToken: string;
  /** PEM. */
  readonly certificateAuthority: string;
  /** Path of a file that holds all of the above. */
  readonly kubeconfig: string;
  /** Gives what kubectl printed; throws with what it printed to standard error. */
  readonly kubectl: (args: readonly string[], input?: string) => Promise<string>;
}

export interface ClusterAccess {
  /** Holds `apiserver.crt`, and will hold the kubeconfig. */
  readonly folder: string;
  readonly url: string;
  readonly token: string;
}

/** Gives the path of a kubeconfig that `openCluster` and every Kubernetes client read. */
export async function writeKubeconfig({ folder, url, token }: ClusterAccess): Promise<string> {
  const authority = await readFile(join(folder, "apiserver.crt"), "base64");
  const content = {
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "test", cluster: { server: url, "certificate-authority-data": authority } }],
    users: [{ name: "admin", user: { token } }],
    contexts: [{ name: "test", context: { cluster: "test", user: "admin" } }],
    "current-context": "test",
  };
  const path = join(folder, "kubeconfig.json");
  await writeFile(path, JSON.stringify(content, undefined, 2));
  return path;
}

export async function openCluster(kubeconfig: string): Promise<Cluster> {
  const { clusters, users } = kubeconfigSchema.parse(
    JSON.parse(await readFile(kubeconfig, "utf8")),
  );
  const [{ cluster }] = clusters;
  return {
    kubeconfig,
    url: cluster.server,
    adminToken: users[0].user.token,
    certificateAuthority: Buffer.from(cluster["certificate-authority-data"], "base64").toString(),
    kubectl: (args, input) => runKubectl(kubeconfig, args, input),
  };
}

const kubeconfigSchema = z.object({
  clusters: z.tuple([
    z.object({
      cluster: z.object({ server: z.string(), "certificate-authority-data": z.string() }),
    }),
  ]),
  users: z.tuple([z.object({ user: z.object({ token: z.string() }) })]),
});

async function runKubectl(
  kubeconfig: string,
  args: readonly string[],
  input?: string,
): Promise<string> {
  const program = await programPath("kubectl");
  const running = exec(program, ["--kubeconfig", kubeconfig, ...args], {
    maxBuffer: maxOutputBytes,
  });
  // What kubectl prints says why it read no further.
  running.child.stdin?.on("error", () => undefined).end(input);
  const { stdout } = await running;
  return stdout;
}

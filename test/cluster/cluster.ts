import { execFile } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
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

export async function clusterAt({ folder, url, token }: ClusterAccess): Promise<Cluster> {
  const certificateAuthority = await readFile(join(folder, "apiserver.crt"), "utf8");
  const kubeconfig = join(folder, "kubeconfig.json");
  const authority = Buffer.from(certificateAuthority).toString("base64");
  const content = {
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "test", cluster: { server: url, "certificate-authority-data": authority } }],
    users: [{ name: "admin", user: { token } }],
    contexts: [{ name: "test", context: { cluster: "test", user: "admin" } }],
    "current-context": "test",
  };
  await writeFile(kubeconfig, JSON.stringify(content));
  const kubectl = (args: readonly string[], input?: string) => runKubectl(kubeconfig, args, input);
  return { url, adminToken: token, certificateAuthority, kubeconfig, kubectl };
}

async function runKubectl(kubeconfig: string, args: readonly string[], input = ""): Promise<string> {
  const program = await programPath("kubectl");
  const running = exec(program, ["--kubeconfig", kubeconfig, ...args], { maxBuffer: maxOutputBytes });
  running.child.stdin?.end(input);
  const { stdout } = await running;
  return stdout;
}

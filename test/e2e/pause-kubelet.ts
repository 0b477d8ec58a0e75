import type { NodeCluster } from "../cluster/start-cluster.ts";
import { findProcesses } from "./processes.ts";

/** Stops the kubelet, as if its node did not answer, until the result is disposed of. Containers run on. */
export async function pauseKubelet({ folder }: NodeCluster): Promise<AsyncDisposable> {
  // The kubelet, and the program that entered the sandbox for it: that one stops along with its child, but does not go on by itself.
  const pids = await findProcesses("cmdline", `--config=${folder}/kubelet.json`);
  const signal = (name: NodeJS.Signals) => {
    for (const pid of pids) process.kill(pid, name);
  };
  signal("SIGSTOP");
  return { [Symbol.asyncDispose]: async () => signal("SIGCONT") };
}

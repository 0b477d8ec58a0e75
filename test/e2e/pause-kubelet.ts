import { basename } from "node:path";
import type { NodeCluster } from "../support/cluster/start-cluster.ts";
import { findProcesses } from "./processes.ts";

/** Stops the kubelet, as on a node that does not respond, until it is disposed of. */
export async function pauseKubelet({ folder }: NodeCluster): Promise<AsyncDisposable> {
  const find = (program: string) =>
    findProcesses(
      "cmdline",
      (words) =>
        basename(words[0] ?? "") === program && words.includes(`--config=${folder}/kubelet.json`),
    );
  const kubelet = await find("kubelet");
  // It stops along with the kubelet, its child, but does not go on along with it.
  const entered = await find("nsenter");
  for (const pid of kubelet) process.kill(pid, "SIGSTOP");
  return {
    async [Symbol.asyncDispose]() {
      for (const pid of [...kubelet, ...entered]) process.kill(pid, "SIGCONT");
    },
  };
}

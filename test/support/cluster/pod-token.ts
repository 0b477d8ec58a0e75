import { workerTokenAudience } from "../../../src/contract/worker.ts";
import type { Cluster } from "./cluster.ts";

export const workerServiceAccount = "model-optimization-worker";

interface PodIdentity {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

/** A token as the kubelet mounts it into a pod. */
export async function podToken(cluster: Cluster, pod: PodIdentity): Promise<string> {
  const { namespace, name, uid } = pod;
  const account = ["create", "token", workerServiceAccount, "-n", namespace];
  const bound = ["--bound-object-kind=Pod", `--bound-object-name=${name}`];
  const output = await cluster.kubectl([
    ...account,
    ...bound,
    `--bound-object-uid=${uid}`,
    `--audience=${workerTokenAudience}`,
  ]);
  return output.trim();
}

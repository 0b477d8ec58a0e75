import { findEtcd, isModuleBuilt } from "./programs.ts";

/** False where a control plane can be started, else the sentence to skip with: `test(name, { skip: clusterMissing }, …)`. */
export const clusterMissing: string | false = await missingForControlPlane();

async function missingForControlPlane(): Promise<string | false> {
  if ((await findEtcd()) === undefined) return "etcd is needed: install Debian's etcd-server";
  if (!(await isModuleBuilt("kubernetes"))) return "Kubernetes is not built: install Go, then `npm test` builds it";
  return false;
}

import type { Installation } from "./installation.ts";

/** Pods of a job's workers, as `pod/NAME`. */
export function listPodNames(installation: Installation, id: string): Promise<string[]> {
  return listNames(installation, id, []);
}

/** Those with containers that run or may start. The kubelet removes the others a moment later. */
export function listActivePodNames(installation: Installation, id: string): Promise<string[]> {
  const active = "--field-selector=status.phase!=Succeeded,status.phase!=Failed";
  return listNames(installation, id, [active]);
}

async function listNames({ kubectl }: Installation, id: string, flags: string[]) {
  const selector = `modeloptimization.dev/job-id=${id}`;
  const pods = await kubectl(["get", "pods", "-l", selector, "-o", "name", ...flags]);
  return pods.split("\n").filter((name) => name !== "");
}

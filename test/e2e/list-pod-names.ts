import type { Installation } from "./installation.ts";

/** Pods of a job's workers, as `pod/NAME`. */
export async function listPodNames({ kubectl }: Installation, id: string): Promise<string[]> {
  const selector = `modeloptimization.dev/job-id=${id}`;
  const pods = await kubectl(["get", "pods", "-l", selector, "-o", "name"]);
  return pods.split("\n").filter((name) => name !== "");
}

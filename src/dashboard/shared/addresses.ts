import { batchAddress, jobAddress } from "../../contract/page-addresses.ts";

export function artifactAddress(jobId: string, name: string): string {
  return `/v1/jobs/${jobId}/artifacts/${encodeURIComponent(name)}`;
}

/** Where a model is shown, by its name. */
export function modelAddress(name: string): string {
  return `/models/${encodeURIComponent(name)}`;
}

/** Where jobs are compared. */
export function compareAddress(jobIds: readonly string[]): string {
  return `/compare?${new URLSearchParams(jobIds.map((id) => ["job", id]))}`;
}

/** Where batches are shown that were just started: several are compared. */
export function startedAddress(batchIds: readonly string[]): string {
  const [only, ...others] = batchIds;
  if (only !== undefined && others.length === 0) return batchAddress(only);
  return `/compare?${new URLSearchParams(batchIds.map((id) => ["batch", id]))}`;
}

/** Where the graph of a job's model is shown at a node, or at the node with a weight. */
export function graphAddress(jobId: string, name: string): string {
  return `${jobAddress(jobId)}${graphHash(name)}`;
}

/** The same on the job's own page. */
export function graphHash(name: string): string {
  return `#graph=${encodeURIComponent(name)}`;
}

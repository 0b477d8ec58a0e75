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

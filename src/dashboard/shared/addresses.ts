export function artifactAddress(jobId: string, name: string): string {
  return `/v1/jobs/${jobId}/artifacts/${encodeURIComponent(name)}`;
}

/** Where a suite's figures are, of one of its models where that is named. */
export function suiteAddress(name: string, model?: string): string {
  const query = model === undefined ? "" : `?model=${encodeURIComponent(model)}`;
  return `/suites/${encodeURIComponent(name)}${query}`;
}

/** Where a model is shown, by its name. */
export function modelAddress(name: string): string {
  return `/models/${encodeURIComponent(name)}`;
}

/** Where jobs are compared. */
export function compareAddress(jobIds: readonly string[]): string {
  return `/compare?${new URLSearchParams(jobIds.map((id) => ["job", id]))}`;
}

/** Where a job is shown, at a part of its page where that is named. */
export function jobAddress(id: string, part?: "baseline"): string {
  return part === undefined ? `/jobs/${id}` : `/jobs/${id}#${part}`;
}

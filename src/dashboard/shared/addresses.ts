export function artifactAddress(jobId: string, name: string): string {
  return `/v1/jobs/${jobId}/artifacts/${encodeURIComponent(name)}`;
}

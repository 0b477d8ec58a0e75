/** Of the service's key that signs links to a job's files. */
export function linkKeyName(jobId: string): string {
  return `artifact-links/${jobId}`;
}

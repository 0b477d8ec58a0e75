/** Paths of the dashboard's pages to which reports and events link, as its router takes them. */
export const pagePaths = {
  job: "/jobs/:id",
  changes: "/jobs/:id/changes",
  batch: "/batches/:id",
  suite: "/suites/:name",
} as const;

/** Where a job is shown, at a part of its page where that is named. */
export function jobAddress(id: string, part?: "baseline" | "log"): string {
  const page = pagePaths.job.replace(":id", id);
  return part === undefined ? page : `${page}#${part}`;
}

/** Where it is shown how a job's model differs from its baseline's, or its result from that model. */
export function changesAddress(id: string, of?: "model" | "result"): string {
  const page = pagePaths.changes.replace(":id", id);
  return of === undefined ? page : `${page}?of=${of}`;
}

export function batchAddress(id: string): string {
  return pagePaths.batch.replace(":id", id);
}

/** Where a suite's figures are, of one of its models where that is named. */
export function suiteAddress(name: string, model?: string): string {
  const page = pagePaths.suite.replace(":name", () => encodeURIComponent(name));
  return model === undefined ? page : `${page}?model=${encodeURIComponent(model)}`;
}

/** Jobs that the dashboard first shows of a list. */
export const jobsOfFirstView = 50;

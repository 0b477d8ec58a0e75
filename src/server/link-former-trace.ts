import type { ServerContext } from "./server-context.ts";
import { requestSpan } from "./trace-requests.ts";

/** Links the request's span to the trace of a job that it repeats, where both are traced. */
export async function linkFormerTrace(
  { records }: ServerContext,
  request: Request,
  jobId: string,
): Promise<void> {
  const span = requestSpan(request);
  if (span === undefined) return;
  const former = await records.traces.findTraceparent(jobId);
  if (former !== undefined) span.link(former);
}

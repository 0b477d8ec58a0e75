import type { Caller } from "../auth/authenticate.ts";
import { isTerminal } from "../contract/jobs/status.ts";
import { computeETag, isETagMatch } from "./etag.ts";
import { readPreferredWait } from "./read-preferred-wait.ts";
import { requireJob } from "./require-job.ts";
import type { RouteHandlers } from "./route-handlers.ts";
import type { ServerContext } from "./server-context.ts";
import { showJob } from "./show-job.ts";

/** The job now, or as soon as it is what the request prefers to wait for. */
export const getJob: RouteHandlers["getJob"] = async (context, input) => {
  const { caller, params, headers, request } = input;
  const known = headers["if-none-match"];
  const seconds = readPreferredWait(headers.prefer);
  let shown = await readJobDetail(context, caller, params.id);
  if (seconds !== undefined) {
    const signal = AbortSignal.any([request.signal, AbortSignal.timeout(seconds * 1000)]);
    for await (const _ of context.records.changes.watch(params.id, signal)) {
      shown = await readJobDetail(context, caller, params.id);
      const isChanged = known !== undefined && !isETagMatch(known, shown.etag);
      if (isChanged || isTerminal(shown.json.status)) break;
    }
  }
  const { json, etag } = shown;
  const applied = seconds === undefined ? {} : { "preference-applied": `wait=${seconds}` };
  const answered = { etag, ...applied };
  if (isETagMatch(known, etag)) return { status: 304, headers: answered };
  return { status: 200, json, headers: answered };
};

async function readJobDetail({ records, executor }: ServerContext, caller: Caller, id: string) {
  const job = await requireJob(records, caller, id);
  const json = { ...showJob(job), queuePosition: executor.queuePosition(job.id) ?? null };
  return { json, etag: computeETag(json) };
}

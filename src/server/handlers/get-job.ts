import { createHash } from "node:crypto";
import { showJobText } from "./show-job.ts";
import type { JobDetail } from "../../contract/jobs/job.ts";
import { isTerminal, type JobStatus } from "../../contract/jobs/status.ts";
import type { RouteHandlers } from "../http/bind-routes.ts";
import { isETagMatch, JsonText } from "../http/build-response.ts";
import { readPreferredWait } from "../http/preferred-wait.ts";
import { notFoundError } from "../http/problem-response.ts";
import type { ServerContext } from "../http/server-context.ts";

type GetJob = Pick<RouteHandlers, "getJob">;

/** @returns the handler of `GET /jobs/{id}`, whose readers share what is being read */
export function createGetJob(context: ServerContext): GetJob {
  const readJob = shareReads(context);
  return {
    /** The job now, or as soon as it is what the request prefers to wait for. */
    async getJob({ records }, { caller: { project }, params: { id }, headers, request }) {
      const known = headers["if-none-match"];
      const seconds = readPreferredWait(headers.prefer);
      let shown = await readJob(project, id);
      if (seconds !== undefined) {
        const signal = AbortSignal.any([request.signal, AbortSignal.timeout(seconds * 1000)]);
        for await (const _ of records.changes.watch(id, signal)) {
          shown = await readJob(project, id);
          const isChanged = known !== undefined && !isETagMatch(known, shown.etag);
          if (isChanged || isTerminal(shown.status)) break;
        }
      }
      const { json, etag } = shown;
      const applied = seconds === undefined ? {} : { "preference-applied": `wait=${seconds}` };
      const answered = { etag, ...applied };
      if (isETagMatch(known, etag)) return { status: 304, headers: answered };
      return { status: 200, json, headers: answered };
    },
  };
}

interface ShownJob {
  readonly project: string;
  readonly status: JobStatus;
  readonly json: JsonText<JobDetail>;
  readonly etag: string;
}

/**
 * Reads jobs. What is read already is shared until the job changes: a thousand requests may wait for
 * one job, and its text may be a megabyte.
 */
function shareReads(context: ServerContext): (project: string, id: string) => Promise<ShownJob> {
  const reading = new Map<string, Promise<ShownJob | undefined>>();
  const { changes } = context.records;
  changes.onChanged((id) => reading.delete(id));
  changes.onGap(() => reading.clear());
  const begin = (id: string) => {
    const read = readShownJob(context, id).finally(() => {
      if (reading.get(id) === read) reading.delete(id);
    });
    reading.set(id, read);
    return read;
  };
  return async (project, id) => {
    const shown = await (reading.get(id) ?? begin(id));
    if (shown?.project !== project) throw notFoundError("job", id);
    return shown;
  };
}

/** Undefined where there is no such job. */
async function readShownJob(
  { records, executor }: ServerContext,
  id: string,
): Promise<ShownJob | undefined> {
  const found = await records.jobs.findText(id);
  if (found === undefined) return undefined;
  const { project, status, document } = found;
  const position = JSON.stringify(executor.queuePosition(id) ?? null);
  const text = `${showJobText(document).slice(0, -1)},"queuePosition":${position}}`;
  const etag = `"${createHash("sha256").update(text).digest("base64url")}"`;
  return { project, status, json: new JsonText<JobDetail>([text]), etag };
}

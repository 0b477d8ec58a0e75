import type { LogLine } from "../contract/jobs/log.ts";
import { limits } from "../contract/limits.ts";
import { unpackSegment } from "./log-segment.ts";
import { packLogs } from "./pack-logs.ts";
import {
  countFitting,
  type LogRange,
  maxSeq,
  readFirstLines,
  readLastLines,
} from "./read-log-lines.ts";
import type { Store } from "./store.ts";

/** Logs: their lines are rows until a while after the job's end, and then compressed segments. */
export function logRecords(store: Store) {
  return {
    /** The next lines of a job, as many as `limits` allows in memory and at least one. */
    readPage: (jobId: string, after: number) => readPage(store, jobId, Math.min(after, maxSeq)),

    /** The last lines of a job in a range, as many as `limits` allows in memory. */
    readPageBefore: (jobId: string, { after, before, limit }: LogRange) =>
      readPageBefore(store, jobId, {
        after: Math.min(after, maxSeq),
        before: Math.min(before, maxSeq),
        limit,
      }),

    /** The last lines of a job, oldest first, as many as `limits` allows in memory. */
    tail: (jobId: string, count: number) =>
      readPageBefore(store, jobId, { after: 0, before: maxSeq, limit: count }),

    /** Packs the logs of jobs that have ended. */
    pack: () => packLogs(store),
  };
}

/** Rows are read before segments: a line that is packed meanwhile is found. */
async function readPage(store: Store, jobId: string, after: number): Promise<LogLine[]> {
  const range = { after, before: maxSeq, limit: limits.logPageLines };
  const rows = await readFirstLines(store.db, jobId, range);
  if (rows[0]?.seq === after + 1) return rows;
  const packed = await readSegmentAfter(store, jobId, after);
  const next = packed.filter(({ seq }) => seq > after).slice(0, limits.logPageLines);
  return next.length > 0 ? next : rows;
}

async function readPageBefore(store: Store, jobId: string, range: LogRange): Promise<LogLine[]> {
  const { after, limit } = range;
  let lines = await readLastLines(store.db, jobId, range);
  for (;;) {
    const [first] = lines;
    const before = first?.seq ?? range.before;
    if (lines.length === limit || before <= after + 1) return lines;
    const packed = await readSegmentBefore(store, jobId, before);
    // What is not packed up to the first line did not fit into the page.
    if (first !== undefined && packed.at(-1)?.seq !== before - 1) return lines;
    const earlier = packed.filter(({ seq }) => seq > after && seq < before);
    if (earlier.length === 0) return lines;
    const all = [...earlier, ...lines].slice(-limit);
    const count = countFitting(all.toReversed().map(measureLine));
    if (count < all.length) return all.slice(-count);
    lines = all;
  }
}

/** The lines of the first segment with a line after this one. */
async function readSegmentAfter({ db }: Store, jobId: string, after: number): Promise<LogLine[]> {
  const segments = db.selectFrom("log_segments").where("job_id", "=", jobId);
  const present = segments
    .where("first_seq", "<=", after + 1)
    .select((eb) => eb.fn.coalesce(eb.fn.max("first_seq"), eb.lit(0)).as("first_seq"));
  const segment = await segments
    .select("lines")
    .where("first_seq", ">=", present)
    .where("last_seq", ">", after)
    .orderBy("first_seq")
    .limit(1)
    .executeTakeFirst();
  return segment === undefined ? [] : unpackSegment(segment);
}

/** The lines of the last segment that begins before a line. */
async function readSegmentBefore({ db }: Store, jobId: string, before: number): Promise<LogLine[]> {
  const segment = await db
    .selectFrom("log_segments")
    .select("lines")
    .where("job_id", "=", jobId)
    .where("first_seq", "<", before)
    .orderBy("first_seq", "desc")
    .limit(1)
    .executeTakeFirst();
  return segment === undefined ? [] : unpackSegment(segment);
}

function measureLine({ text }: LogLine) {
  return { bytes: Buffer.byteLength(text) };
}

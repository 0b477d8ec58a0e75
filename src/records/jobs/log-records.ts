import type { ExpressionBuilder, Kysely } from "kysely";
import { type AttemptRecord, currentAttempts } from "./find-attempts.ts";
import type { JobRecord } from "./find-record.ts";
import { type LogLine, logLine } from "../../contract/jobs/log.ts";
import { limits } from "../../contract/limits.ts";
import { packSegment, unpackSegment } from "../database/log-segment.ts";
import { countFitting } from "../database/rows.ts";
import type { Schema } from "../database/schema.ts";
import { runWriteTransaction, type Store, type WriteTransaction } from "../database/store.ts";

/** Logs: their lines are rows until a while after the job's end, and then compressed segments. */
export function logRecords(store: Store) {
  return {
    /** The next lines of a job, as many as `limits` allows in memory and at least one. */
    async readPage(jobId: string, asked: number): Promise<LogLine[]> {
      const after = Math.min(asked, maxSeq);
      const range = { after, before: maxSeq, limit: limits.logPageLines };
      // Rows are read before segments: a line that is packed meanwhile is found.
      const rows = await readFirstLines(store.db, jobId, range);
      if (rows[0]?.seq === after + 1) return rows;
      const packed = await readSegmentAfter(store, jobId, after);
      const next = packed.filter(({ seq }) => seq > after).slice(0, limits.logPageLines);
      return next.length > 0 ? next : rows;
    },

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

    /**
     * Packs the logs of jobs that have ended into compressed segments, one in each transaction:
     * others wait for it. Readers see every line once, packed or not.
     */
    async pack(): Promise<void> {
      const settled = new Date(store.now().getTime() - settledMs).toISOString();
      for (;;) {
        const ended = await store.db
          .selectFrom("jobs")
          .select("id")
          .where("finished_at", "is not", null)
          .where("finished_at", "<", settled)
          .where("has_log_lines", "=", 1)
          .orderBy("finished_at")
          .limit(jobsPerPage)
          .execute();
        for (const { id } of ended) {
          while (await runWriteTransaction(store, (writing) => packLines(writing, id)));
        }
        if (ended.length < jobsPerPage) return;
      }
    },
  };
}

const linesPerInsert = 500;

/** Appends lines to the job's log. The returned record counts them; the caller saves it. */
export async function appendLines(
  writing: WriteTransaction,
  record: JobRecord,
  lines: readonly Omit<LogLine, "seq">[],
): Promise<JobRecord> {
  const rows = lines.map((line, i) => ({
    ...line,
    job_id: record.job.id,
    seq: record.nextLogSeq + i,
  }));
  for (let start = 0; start < rows.length; start += linesPerInsert) {
    const chunk = rows.slice(start, start + linesPerInsert);
    await writing.trx.insertInto("log_lines").values(chunk).execute();
  }
  return { ...record, nextLogSeq: record.nextLogSeq + lines.length };
}

/** The line of a job's log in place of lines that nobody can read any more. */
export function lostLines(why: string): Pick<LogLine, "stream" | "text">[] {
  return [{ stream: "stderr", text: `(lines of the worker may be missing here: ${why})` }];
}

/** The same for each replaced worker whose last lines are not recorded when the job ends. */
export function unreadLines(attempts: readonly AttemptRecord[], now: Date): Omit<LogLine, "seq">[] {
  const current = currentAttempts(attempts);
  const unread = attempts.filter((each) => each.endedAt === null && !current.includes(each));
  const at = now.toISOString();
  return unread.flatMap(({ attempt }) =>
    lostLines(`the job ended before the log of attempt ${attempt} was read`).map((line) => ({
      ...line,
      at,
    })),
  );
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
    const count = countFitting(all.toReversed().map(measureLine), limits.logPageBytes);
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

/** Time for the last lines of a job that has ended, such as those in the log of its pod. */
const settledMs = 600_000;
const jobsPerPage = 100;
/** More compress little better. */
const linesPerSegment = 5_000;

/** @returns whether there are more lines */
async function packLines({ trx }: WriteTransaction, jobId: string): Promise<boolean> {
  const range = { after: 0, before: maxSeq, limit: linesPerSegment };
  const lines = await readFirstLines(trx, jobId, range);
  if (lines.length === 0) {
    await trx.updateTable("jobs").set({ has_log_lines: 0 }).where("id", "=", jobId).execute();
    return false;
  }
  const segment = packSegment(lines);
  await trx
    .insertInto("log_segments")
    .values({ job_id: jobId, ...segment })
    .execute();
  await trx
    .deleteFrom("log_lines")
    .where("job_id", "=", jobId)
    .where("seq", "<=", segment.last_seq)
    .execute();
  return true;
}

/** Of an integer column, less what queries add: no line has a larger number. */
const maxSeq = 2 ** 31 - 2;

/** Lines of a log between two numbers, both exclusive, at most `limit` of them. */
interface LogRange {
  readonly after: number;
  readonly before: number;
  readonly limit: number;
}

/** The first lines of a range that are not packed, as many as a page may have bytes. */
async function readFirstLines(
  db: Kysely<Schema>,
  jobId: string,
  range: LogRange,
): Promise<LogLine[]> {
  const lines = selectLines(db, jobId, range);
  const sizes = await lines.select(lineSize).orderBy("seq").limit(range.limit).execute();
  const last = sizes[countFitting(sizes, limits.logPageBytes) - 1];
  if (last === undefined) return [];
  return readLogRows(lines.where("seq", "<=", last.seq));
}

/** The same of the last lines of a range, oldest first. */
async function readLastLines(
  db: Kysely<Schema>,
  jobId: string,
  range: LogRange,
): Promise<LogLine[]> {
  const lines = selectLines(db, jobId, range);
  const sizes = await lines.select(lineSize).orderBy("seq", "desc").limit(range.limit).execute();
  const first = sizes[countFitting(sizes, limits.logPageBytes) - 1];
  if (first === undefined) return [];
  return readLogRows(lines.where("seq", ">=", first.seq));
}

function selectLines(db: Kysely<Schema>, jobId: string, { after, before }: LogRange) {
  return db
    .selectFrom("log_lines")
    .where("job_id", "=", jobId)
    .where("seq", ">", after)
    .where("seq", "<", before);
}

async function readLogRows(lines: ReturnType<typeof selectLines>): Promise<LogLine[]> {
  const rows = await lines.select(["seq", "at", "stream", "text"]).orderBy("seq").execute();
  return rows.map((row) => logLine.parse(row));
}

function lineSize(eb: ExpressionBuilder<Schema, "log_lines">) {
  return ["seq", eb.fn<number>("octet_length", ["text"]).as("bytes")] as const;
}

/** Rows that one transaction deletes: others wait for it. */
const linesPerStep = 2_000;
const segmentsPerStep = 50;

/** Lines before segments: those that are packed meanwhile are deleted as well. */
export async function deleteLog({ db }: Store, jobId: string): Promise<void> {
  await deleteInSteps(linesPerStep, (limit) => {
    const lines = db.selectFrom("log_lines").select("seq").where("job_id", "=", jobId);
    const first = lines.orderBy("seq").limit(limit);
    return db.deleteFrom("log_lines").where("job_id", "=", jobId).where("seq", "in", first);
  });
  await deleteInSteps(segmentsPerStep, (limit) => {
    const segments = db.selectFrom("log_segments").select("first_seq").where("job_id", "=", jobId);
    const first = segments.orderBy("first_seq").limit(limit);
    return db
      .deleteFrom("log_segments")
      .where("job_id", "=", jobId)
      .where("first_seq", "in", first);
  });
}

async function deleteInSteps(
  rows: number,
  deleteFirst: (rows: number) => {
    executeTakeFirstOrThrow(): Promise<{ readonly numDeletedRows: bigint }>;
  },
): Promise<void> {
  for (;;) {
    const { numDeletedRows } = await deleteFirst(rows).executeTakeFirstOrThrow();
    if (numDeletedRows < rows) return;
  }
}

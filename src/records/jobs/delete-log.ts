import type { Store } from "../database/store.ts";

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

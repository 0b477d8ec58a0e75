import { DatabaseSync } from "node:sqlite";
import { seedJobs } from "../api/seed-jobs.ts";

const text =
  "Layer 117 of 240: MatMul of the attention, int8 by block, 24,576 bytes, SQNR 41.3 dB and more";
export const logLineBytes = text.length + 1;

/** Adds a job with a log. @returns its id */
export async function seedLog(path: string, lines: number): Promise<string> {
  await seedJobs(path, 1);
  const database = new DatabaseSync(path);
  const job = database.prepare("select id from jobs order by id desc").get();
  const id = String(job?.["id"]);
  const insert = database.prepare("insert into log_lines values (?, ?, ?, 'stdout', ?)");
  const at = new Date().toISOString();
  database.exec("begin");
  for (let seq = 1; seq <= lines; seq++) insert.run(id, seq, at, text);
  database.exec("commit");
  database.close();
  return id;
}

import { DatabaseSync } from "node:sqlite";
import { setTimeout as delay } from "node:timers/promises";

const retryMs = 500;

/** Runs the work in one process of this machine at a time. A SQLite lock, since it ends with a process that is killed. */
export async function withLock(path: string, work: () => Promise<void>): Promise<void> {
  using lock = new DatabaseSync(path, { timeout: 0 });
  while (!tryLock(lock)) await delay(retryMs);
  await work();
}

function tryLock(lock: DatabaseSync): boolean {
  try {
    lock.exec("BEGIN EXCLUSIVE");
    return true;
  } catch (error) {
    if (error instanceof Error && "errcode" in error && error.errcode === sqliteBusy) return false;
    throw error;
  }
}

const sqliteBusy = 5;

import { type FileHandle, open } from "node:fs/promises";
import { ServiceError } from "../contract/errors.ts";
import { shareFlushes } from "./share-flushes.ts";

/** What a database file has committed and not yet taken over from its write-ahead log. */
interface WriteAheadLog {
  /** Resolves when all that was committed before the call survives a power failure. */
  flush(): Promise<void>;
  close(): Promise<void>;
}

/**
 * SQLite itself would flush within each commit, and block the process' one thread meanwhile. Here
 * the flush runs beside it, and commits that come close together share one. After one that failed,
 * `takeOver` writes what the log has into the database and begins the log anew.
 */
export function openWriteAheadLog(
  database: string,
  options: { readonly takeOver: () => Promise<void> },
): WriteAheadLog {
  let file: Promise<FileHandle> | undefined;
  let hasFailed = false;
  const flush = shareFlushes(async () => {
    // SQLite keeps the file for as long as the database is open.
    file ??= open(`${database}-wal`, "r+");
    const log = await file;
    // The kernel forgets what it could not write: another flush would succeed without it.
    if (hasFailed) await options.takeOver();
    hasFailed = true;
    await log.datasync().catch((cause: unknown) => {
      throw new ServiceError("unavailable", "The database's disk fails", { cause });
    });
    hasFailed = false;
  });
  return {
    flush,
    async close() {
      await (await file)?.close();
    },
  };
}

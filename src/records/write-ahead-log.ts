import { type FileHandle, open } from "node:fs/promises";
import { shareFlushes } from "./share-flushes.ts";

/** What a database file has committed and not yet taken over from its write-ahead log. */
interface WriteAheadLog {
  /** Resolves when all that was committed before the call survives a power failure. */
  flush(): Promise<void>;
  close(): Promise<void>;
}

/**
 * SQLite itself would flush within each commit, and block the process' one thread meanwhile. Here
 * the flush runs beside it, and commits that come close together share one.
 */
export function openWriteAheadLog(database: string): WriteAheadLog {
  let file: Promise<FileHandle> | undefined;
  const flush = shareFlushes(async () => {
    // SQLite keeps the file for as long as the database is open.
    file ??= open(`${database}-wal`, "r+");
    await (await file).datasync();
  });
  return {
    flush,
    async close() {
      await (await file)?.close();
    },
  };
}

import { statfs } from "node:fs/promises";
import { ServiceError } from "../contract/errors.ts";
import { formatBytes } from "../contract/text/format-bytes.ts";

/** How often the space is looked at while content arrives, bytes. */
const checkedBytes = 4 * 1024 * 1024;
/** Largest part of a disk that is kept free, for disks on which the reserve would be most of it. */
const largestShare = 0.1;
const retrySeconds = 60;

/** The space of a folder's disk, less a reserve that is kept for records. */
export interface DiskSpace {
  /** Bytes that are free, how many of them new work leaves, and how many the disk has. */
  read(): Promise<{ readonly free: number; readonly reserve: number; readonly total: number }>;
  /** @throws ServiceError storage_full where less than the reserve is free */
  require(): Promise<void>;
  /** The source, which fails with storage_full where it would use the reserve up. */
  guard(source: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array>;
}

/**
 * Looks at the disk itself each time, so that what others free is available at once; calls that
 * come while it looks share the answer.
 */
export function createDiskSpace(folder: string, reserveBytes: number): DiskSpace {
  const read = async () => {
    const { bavail, blocks, bsize } = await statfs(folder);
    const total = blocks * bsize;
    return { free: bavail * bsize, reserve: Math.min(reserveBytes, total * largestShare), total };
  };
  const look = async () => {
    const { free, reserve } = await read();
    if (free < reserve) throw fullDiskError(free, reserve);
  };
  let looking: Promise<void> | undefined;
  const requireSpace = () => {
    looking ??= look().finally(() => (looking = undefined));
    return looking;
  };
  return { read, require: requireSpace, guard: (source) => guardSource(source, requireSpace) };
}

async function* guardSource(
  source: AsyncIterable<Uint8Array>,
  requireSpace: () => Promise<void>,
): AsyncGenerator<Uint8Array> {
  let unchecked = Infinity;
  for await (const chunk of source) {
    unchecked += chunk.byteLength;
    if (unchecked >= checkedBytes) {
      await requireSpace();
      unchecked = 0;
    }
    yield chunk;
  }
}

function fullDiskError(free: number, reserve: number): ServiceError {
  const left = `The disk of the service has ${formatBytes(free)} left`;
  const kept = `${formatBytes(reserve)} are kept for records of what runs`;
  return new ServiceError("storage_full", `${left}, and ${kept}`, {
    headers: { "retry-after": String(retrySeconds) },
  });
}

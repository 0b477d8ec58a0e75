import { quotaError } from "../../contract/people/usage.ts";
import type { Records } from "../../records/open-records.ts";
import type { BlobStore } from "../../storage/blob-store.ts";

/** How many bytes may arrive before they are compared with the quota again. */
const checkedBytes = 4 * 1024 * 1024;
/** Interrupted uploads, which count too, are deleted after a day. */
const retrySeconds = 3600;

/** Bytes that arrive. They count as stored until it is disposed of. */
interface Transfer extends Disposable {
  /**
   * Passes bytes on.
   * @throws ServiceError too_many_bytes
   */
  meter(source: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array>;
}

/** Bounds what projects store: what they have, what was interrupted and what is arriving. */
export interface StorageQuota {
  readonly maxBytes: number;
  usedBytes(project: string): Promise<number>;
  /** @throws ServiceError too_many_bytes if there is no room for so many bytes */
  begin(
    project: string,
    content: {
      /** Bytes that will arrive, as far as they are known. */
      readonly bytes: number;
      /** Bytes of an interrupted upload that it continues: nobody else counts them meanwhile. */
      readonly offset?: number;
    },
  ): Promise<Transfer>;
}

/** Each project may store so many bytes. */
export function createStorageQuota(
  { usage }: { readonly usage: Pick<Records["usage"], "storedBytes"> },
  blobs: Pick<BlobStore, "keptBytes">,
  maxBytes: number,
): StorageQuota {
  const arriving = new Map<string, number>();
  const countArriving = (project: string) => arriving.get(project) ?? 0;
  const countStored = async (project: string) =>
    (await usage.storedBytes(project)) + countArriving(project);
  return {
    maxBytes,
    usedBytes: async (project) => (await countStored(project)) + (await blobs.keptBytes(project)),

    async begin(project, { bytes: expected, offset = 0 }) {
      const requireRoom = async (bytes: number) => {
        const used = (await blobs.keptBytes(project)) + (await countStored(project));
        if (used + bytes > maxBytes) throw tooManyBytesError(used, maxBytes);
      };
      await requireRoom(expected);
      const add = (bytes: number) => arriving.set(project, countArriving(project) + bytes);
      return openTransfer(offset, add, () => requireRoom(0));
    },
  };
}

/** Adds bytes as they arrive, and takes them away at its end. */
function openTransfer(
  offset: number,
  add: (bytes: number) => void,
  requireRoom: () => Promise<void>,
): Transfer {
  let received = offset;
  let isOpen = true;
  add(offset);
  return {
    async *meter(source) {
      let unchecked = 0;
      for await (const chunk of source) {
        // A source that is aborted can still give a chunk.
        if (!isOpen) return;
        received += chunk.byteLength;
        add(chunk.byteLength);
        unchecked += chunk.byteLength;
        if (unchecked >= checkedBytes) {
          await requireRoom();
          unchecked = 0;
        }
        yield chunk;
      }
      await requireRoom();
    },
    [Symbol.dispose]() {
      if (isOpen) add(-received);
      isOpen = false;
    },
  };
}

function tooManyBytesError(used: number, maxBytes: number) {
  return quotaError({
    code: "too_many_bytes",
    message: `The project stores ${used} bytes of ${maxBytes}: there is no room for these`,
    name: "stored-bytes",
    size: maxBytes,
    retrySeconds,
  });
}

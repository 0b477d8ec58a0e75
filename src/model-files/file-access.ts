import { readSync } from "node:fs";
import type { FileHandle } from "node:fs/promises";

/** Most bytes of one system call. */
const maxCallBytes = 1 << 30;

/** Fills `bytes` from `position` of a file on. @throws RangeError where the file ends before */
export function readExactlySync(descriptor: number, bytes: Uint8Array, position: number): void {
  for (let done = 0; done < bytes.length;) {
    const wanted = Math.min(bytes.length - done, maxCallBytes);
    const count = readSync(descriptor, bytes, done, wanted, position + done);
    if (count === 0) {
      throw new RangeError(
        `The file ends at byte ${position + done}, inside a range that must be read`,
      );
    }
    done += count;
  }
}

/** Fills `bytes` from a position of a file on. @throws an `endError` where the file ends before */
export async function readExactly(
  file: FileHandle,
  bytes: Uint8Array,
  position: number,
  endError: () => Error,
): Promise<void> {
  for (let done = 0; done < bytes.length;) {
    const { bytesRead } = await file.read(bytes, done, bytes.length - done, position + done);
    if (bytesRead === 0) throw endError();
    done += bytesRead;
  }
}

/** A place of an open file. */
interface FilePlace {
  readonly file: FileHandle;
  readonly position: number;
}

const copiedAtOnce = 1024 * 1024;

/** Copies bytes of a file to a place of another one. @throws RangeError where the file ends before */
export async function copyRange(from: FilePlace, to: FilePlace, length: number): Promise<void> {
  const buffer = new Uint8Array(Math.min(copiedAtOnce, length));
  const endError = () => new RangeError(`The file ends before byte ${from.position + length}`);
  for (let done = 0; done < length; done += buffer.length) {
    const part = buffer.subarray(0, length - done);
    await readExactly(from.file, part, from.position + done, endError);
    await writeAllBytes(to.file, part, to.position + done);
  }
}

/** Writes all bytes at a position of a file. */
export async function writeAllBytes(
  file: FileHandle,
  bytes: Uint8Array,
  position: number,
): Promise<void> {
  for (let done = 0; done < bytes.length;) {
    done += (await file.write(bytes, done, bytes.length - done, position + done)).bytesWritten;
  }
}

import { closeSync, existsSync, fstatSync, openSync, statSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { readExactlySync } from "../../model-files/file-access.ts";

/** A part of a file that is elsewhere. */
export interface RemoteRange {
  readonly path: string;
  readonly offset: number;
  readonly length: number;
}

interface Place {
  readonly path: string;
  readonly offset: number;
}

/** Files of a checkpoint whose content is elsewhere; only their first bytes are here. */
export interface RemoteFiles {
  /** Folder for what is fetched. */
  readonly directory: string;
  /** Copies a part of one to a place of a file, which exists afterwards. */
  fetch(this: void, range: RemoteRange, to: Place, signal: AbortSignal): Promise<void>;
}

/** The first bytes of a file that is elsewhere, and its size; they stand in for it in its folder. */
export interface FileHead {
  readonly bytes: Uint8Array;
  /** Of the whole file. */
  readonly size: number;
}

const sizeBytes = 8;

function headPath(file: string): string {
  return `${file}.head`;
}

/** Writes what stands in for a file: the bytes, and its size after them. */
export async function writeFileHead(file: string, { bytes, size }: FileHead): Promise<void> {
  const behind = Buffer.alloc(sizeBytes);
  behind.writeBigUInt64LE(BigInt(size));
  await writeFile(headPath(file), Buffer.concat([bytes, behind]), { flag: "wx" });
}

/** Where the first bytes of a file that is elsewhere lie, and how many these are. */
export function locateFileHead(file: string): { path: string; bytes: number } {
  const found = headPath(file);
  return { path: found, bytes: statSync(found).size - sizeBytes };
}

/** Whether a file of a checkpoint is here, or its first bytes are. */
export function hasFileOrHead(file: string): boolean {
  return existsSync(file) || existsSync(headPath(file));
}

/** Size of a file that is here or elsewhere. */
export function sizeOfFile(file: string): number {
  if (existsSync(file)) return statSync(file).size;
  using head = openHead(file);
  return head.size;
}

/** A file whose first bytes can be read, at least those of its header. */
export interface OpenHead extends Disposable {
  readonly size: number;
  /** @throws RangeError where the file, or what is here of it, ends before */
  read(bytes: Uint8Array, position: number): void;
}

/** Opens a file, or what stands in for it. */
export function openHead(file: string): OpenHead {
  const isHere = existsSync(file);
  const descriptor = openSync(isHere ? file : headPath(file), "r");
  const { size: length } = fstatSync(descriptor);
  const close = () => closeSync(descriptor);
  if (isHere) {
    return {
      size: length,
      read: (bytes, position) => readExactlySync(descriptor, bytes, position),
      [Symbol.dispose]: close,
    };
  }
  const end = length - sizeBytes;
  const behind = Buffer.alloc(sizeBytes);
  readExactlySync(descriptor, behind, end);
  return {
    size: Number(behind.readBigUInt64LE()),
    read(bytes, position) {
      if (position + bytes.length > end) {
        throw new RangeError(`Byte ${position + bytes.length} of "${file}" is elsewhere`);
      }
      readExactlySync(descriptor, bytes, position);
    },
    [Symbol.dispose]: close,
  };
}

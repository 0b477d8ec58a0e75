import { open } from "node:fs/promises";
import type { FileHandle } from "node:fs/promises";
import { z } from "zod";

/** Largest trailer: a hundred times what a model of 10,000 weights needs, bytes. */
const maxTrailerBytes = 256 * 1024 * 1024;
/** At the very end of the file, the length of the trailer. */
const lengthBytes = 8;

const errorSums = z.object({
  signal: z.number(),
  noise: z.number(),
  changed: z.number(),
  product: z.number(),
  maxAbsoluteError: z.number(),
  notFinite: z.boolean(),
});

const trailer = z.array(
  z.object({
    task: z.string().describe("Digest of the task."),
    bytes: z.int().min(0).describe("Length of its outputs."),
    weight: z.int().min(0),
    sums: errorSums,
    rejection: z.string().optional(),
  }),
);

/** Results of the tasks of a partition, in the order in which their outputs are in the file. */
type PartitionTrailer = z.infer<typeof trailer>;

/** Appends the trailer to the outputs of a partition. @returns the file's size */
export async function writeTrailer(
  handle: FileHandle,
  entries: PartitionTrailer,
  position: number,
): Promise<number> {
  const text = Buffer.from(JSON.stringify(entries));
  const length = Buffer.alloc(lengthBytes);
  length.writeBigUInt64LE(BigInt(text.length));
  const bytes = Buffer.concat([text, length]);
  for (let done = 0; done < bytes.length;) {
    const { bytesWritten } = await handle.write(bytes, done, bytes.length - done, position + done);
    done += bytesWritten;
  }
  return position + bytes.length;
}

/** @throws Error if a file is no partition, or not all of one */
export async function readTrailer(file: string): Promise<PartitionTrailer> {
  await using handle = await open(file, "r");
  const { start, length } = await findTrailer(handle, file);
  const text = Buffer.alloc(length);
  for (let done = 0; done < length;) {
    const { bytesRead } = await handle.read(text, done, length - done, start + done);
    if (bytesRead === 0) throw new Error(`"${file}" became shorter while it was read`);
    done += bytesRead;
  }
  const entries = trailer.parse(JSON.parse(text.toString()));
  const outputBytes = entries.reduce((sum, { bytes }) => sum + bytes, 0);
  if (outputBytes !== start) throw new Error(`"${file}" is not a whole share`);
  return entries;
}

async function findTrailer(
  handle: FileHandle,
  file: string,
): Promise<{ start: number; length: number }> {
  const { size } = await handle.stat();
  const position = Math.max(0, size - lengthBytes);
  const bytes = Buffer.alloc(lengthBytes);
  const { bytesRead } = await handle.read(bytes, 0, lengthBytes, position);
  const length = Number(bytes.readBigUInt64LE());
  const start = position - length;
  if (bytesRead < lengthBytes || length > maxTrailerBytes || start < 0) {
    throw new Error(`"${file}" is not a share`);
  }
  return { start, length };
}

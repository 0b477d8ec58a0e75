import { z } from "zod";
import { modelFile } from "../../contract/models/manifest.ts";
import { readJsonTrailer } from "./json-trailer.ts";

const payload = z.object({
  offset: z.int().min(0),
  length: z.int().min(0),
  sha256: z.string().describe("Of the content."),
});

const outlineTrailer = z.object({
  modelSha256: z.string(),
  bytes: z.int().min(1).describe("Size of the model's file."),
  payloads: z.array(payload).describe("What is left out, in the order of the file."),
  files: z.array(modelFile).describe("External data, by paths below the model's folder."),
});

/** The content of a large tensor, which an outline leaves out. */
export type OutlinePayload = z.infer<typeof payload>;

/** A model's file without the content of its large tensors: what is left out, and where it lies. */
export type ModelOutline = z.infer<typeof outlineTrailer>;

/** A part of the model's file that its outline has. */
interface OutlinePart {
  /** In the model's file. */
  readonly offset: number;
  /** In the outline's. */
  readonly position: number;
  readonly length: number;
}

/** The parts between the payloads, which an outline holds one after the other. */
export function* outlineParts({
  bytes,
  payloads,
}: Pick<ModelOutline, "bytes"> & {
  readonly payloads: readonly Pick<OutlinePayload, "offset" | "length">[];
}): Generator<OutlinePart> {
  let [offset, position] = [0, 0];
  for (const next of [...payloads, { offset: bytes, length: 0 }]) {
    const length = next.offset - offset;
    if (length < 0) throw new Error(`An outline's payload at byte ${next.offset} begins too early`);
    yield { offset, position, length };
    position += length;
    offset = next.offset + next.length;
  }
}

/** @throws Error if a file is not an outline */
export async function readOutline(file: string): Promise<ModelOutline> {
  return outlineTrailer.parse((await readJsonTrailer(file)).value);
}

import { type FileHandle, open } from "node:fs/promises";
import { type ModelOutline, outlineParts, readOutline } from "./onnx/model-outline.ts";
import { readExactly } from "./onnx/read-exactly.ts";
import { writeFully } from "./onnx/write-fully.ts";

/**
 * Writes the parts of an ONNX file that its outline has to their places in a file of full size,
 * which can be planned: what is left out are holes.
 * @returns what is left out
 * @throws Error if a file is no outline
 */
export async function restoreOutline(file: string, modelPath: string): Promise<ModelOutline> {
  const outline = await readOutline(file);
  await using source = await open(file, "r");
  await using model = await open(modelPath, "wx");
  await model.truncate(outline.bytes);
  for (const { offset, position, length } of outlineParts(outline)) {
    await writeFully(model, await readPart(source, position, length), offset);
  }
  return outline;
}

/** Whether an ONNX file has the parts that its outline has. */
export async function hasOutline(modelPath: string, file: string): Promise<boolean> {
  const outline = await readOutline(file);
  await using source = await open(file, "r");
  await using model = await open(modelPath, "r");
  if ((await model.stat()).size !== outline.bytes) return false;
  for (const { offset, position, length } of outlineParts(outline)) {
    const expected = await readPart(source, position, length);
    if (!Buffer.from(expected.buffer).equals(await readPart(model, offset, length))) return false;
  }
  return true;
}

async function readPart(
  source: FileHandle,
  position: number,
  length: number,
): Promise<Uint8Array<ArrayBuffer>> {
  const part = new Uint8Array(length);
  const endError = () => new Error("The outline or its model became shorter while it was read");
  await readExactly(source, part, { position, endError });
  return part;
}

import { open } from "node:fs/promises";
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
    const part = new Uint8Array(length);
    const endError = () => new Error(`"${file}" is not a whole outline`);
    await readExactly(source, part, { position, endError });
    await writeFully(model, part, offset);
  }
  return outline;
}

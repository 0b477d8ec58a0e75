/** Wire types of the fields of `ModelProto`, by their numbers: 0 is an integer, 2 has a length. */
const fieldTypes: ReadonlyMap<number, number> = new Map([
  [1, 0],
  [2, 2],
  [3, 2],
  [4, 2],
  [5, 0],
  [6, 2],
  [7, 2],
  [8, 2],
  [14, 2],
  [20, 2],
  [25, 2],
  [26, 2],
]);
/** Enough for the fields before the graph. */
const headBytes = 65_536;

/** @throws Error where a file is not an ONNX model, as far as its beginning says */
export async function checkModelFile(file: File): Promise<void> {
  const head = new Uint8Array(await file.slice(0, headBytes).arrayBuffer());
  const problem = findModelProblem(head, file.size);
  if (problem !== undefined) {
    throw new Error(
      `"${file.name}" is not an ONNX model: ${problem}. Choose a file in .onnx format.`,
    );
  }
}

/** What is wrong with the beginning of a model's file; undefined where nothing is. */
export function findModelProblem(head: Uint8Array, fileBytes: number): string | undefined {
  if (fileBytes === 0) return "it is empty";
  const notOnnx = looksLikeText(head) ? "it is a text file" : "its content is of another format";
  let at = 0;
  while (at < head.length) {
    const tag = readVarint(head, at);
    if (tag === undefined || fieldTypes.get(tag.value >>> 3) !== (tag.value & 7)) return notOnnx;
    const value = readVarint(head, tag.end);
    // The rest of the field lies beyond what was read.
    if (value === undefined) return undefined;
    at = value.end;
    if ((tag.value & 7) === 2) at += value.value;
    if (at > fileBytes) return looksLikeText(head) ? notOnnx : "it breaks off";
  }
  return undefined;
}

interface Varint {
  readonly value: number;
  readonly end: number;
}

function readVarint(bytes: Uint8Array, start: number): Varint | undefined {
  let value = 0;
  for (let at = start; at < Math.min(bytes.length, start + 10); at++) {
    const byte = bytes[at] ?? 0;
    value += (byte & 127) * 2 ** (7 * (at - start));
    if (byte < 128) return { value, end: at + 1 };
  }
  return undefined;
}

function looksLikeText(bytes: Uint8Array): boolean {
  const first = bytes.subarray(0, 512);
  return first.every((byte) => byte >= 32 || byte === 9 || byte === 10 || byte === 13);
}

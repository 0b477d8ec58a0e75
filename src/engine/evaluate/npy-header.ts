import { countElements } from "../onnx/count-elements.ts";
import { elementType, elementTypes, type ElementType } from "./tensor-data.ts";

export interface NpyHeader {
  readonly dtype: string;
  /** The element type that `dtype` names; undefined for those that no model takes. */
  readonly type: ElementType | undefined;
  readonly shape: readonly number[];
  /** Where the elements begin in the file, bytes. */
  readonly dataOffset: number;
}

const magic = Buffer.from("\u0093NUMPY", "latin1");
/** NumPy itself refuses longer headers of untrusted files from 10,000 bytes on. */
const maxHeaderBytes = 10_000;
/** NumPy's own limit since version 2. */
const maxRank = 64;
const headerPattern = new RegExp(
  [
    /^\{\s*'descr'\s*:\s*'([^']{2,16})'\s*,/,
    /\s*'fortran_order'\s*:\s*(True|False)\s*,/,
    /\s*'shape'\s*:\s*\(([\d\s,L]*)\)\s*,?\s*\}\s*$/,
  ]
    .map(({ source }) => source)
    .join(""),
);

/** Bytes of a `.npy` file in which any header ends that `parseNpyHeader` accepts. */
export const maxNpyPreambleBytes = 12 + maxHeaderBytes;

/**
 * Parses the start of a `.npy` file (NEP 1; versions 1 to 3).
 * @throws SyntaxError or RangeError with the reason
 */
export function parseNpyHeader(file: Buffer): NpyHeader {
  const { start, end } = locateHeader(file);
  const [, dtype, fortranOrder, shapeText] =
    headerPattern.exec(file.toString("utf8", start, end)) ?? [];
  if (dtype === undefined || shapeText === undefined) {
    throw new SyntaxError("Its header cannot be understood");
  }
  const shape = parseShape(shapeText);
  if (fortranOrder === "True" && shape.length > 1) {
    throw new SyntaxError("It is in Fortran order; store numpy.ascontiguousarray(...)");
  }
  return { dtype, type: findElementType(dtype), shape, dataOffset: end };
}

function locateHeader(file: Buffer): { start: number; end: number } {
  const version = file[6];
  if (file.length < 12 || !file.subarray(0, 6).equals(magic)) {
    throw new SyntaxError("It is no .npy file");
  }
  if (version !== 1 && version !== 2 && version !== 3) {
    throw new SyntaxError(`Its .npy version is ${version}; versions 1 to 3 are read`);
  }
  const start = version === 1 ? 10 : 12;
  const length = version === 1 ? file.readUInt16LE(8) : file.readUInt32LE(8);
  if (length > maxHeaderBytes) {
    throw new RangeError(`Its header takes ${length} bytes; at most ${maxHeaderBytes} are read`);
  }
  if (start + length > file.length) throw new RangeError("Its header is truncated");
  return { start, end: start + length };
}

function parseShape(text: string): number[] {
  const shape = text
    .split(",")
    .map((size) => size.trim().replace(/L$/, ""))
    .filter((size) => size !== "")
    .map(Number);
  if (shape.length > maxRank) {
    throw new RangeError(`It has ${shape.length} dimensions; at most ${maxRank} are read`);
  }
  if (!shape.every(Number.isSafeInteger) || !Number.isSafeInteger(countElements(shape))) {
    throw new RangeError("Its shape is too large or no list of sizes");
  }
  return shape;
}

function findElementType(dtype: string): ElementType | undefined {
  const littleEndian = dtype.replace(/^=/, "<").replace(/^[<>=](?=[iub]1$)/, "|");
  return elementType.options.find((type) => elementTypes[type].dtype === littleEndian);
}

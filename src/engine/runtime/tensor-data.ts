/** Element types of tensors that can be compared: bytes of an element, and NumPy's name. */
export const elementTypes = {
  float32: { bytes: 4, dtype: "<f4" },
  float64: { bytes: 8, dtype: "<f8" },
  float16: { bytes: 2, dtype: "<f2" },
  int8: { bytes: 1, dtype: "|i1" },
  int16: { bytes: 2, dtype: "<i2" },
  int32: { bytes: 4, dtype: "<i4" },
  int64: { bytes: 8, dtype: "<i8" },
  uint8: { bytes: 1, dtype: "|u1" },
  uint16: { bytes: 2, dtype: "<u2" },
  uint32: { bytes: 4, dtype: "<u4" },
  uint64: { bytes: 8, dtype: "<u8" },
  bool: { bytes: 1, dtype: "|b1" },
} as const;

export type ElementType = keyof typeof elementTypes;

export const elementTypeNames = Object.keys(elementTypes) as readonly ElementType[];

export function isElementType(type: string): type is ElementType {
  return Object.hasOwn(elementTypes, type);
}

/** A tensor in a message between processes: little-endian elements in row-major order. */
export interface TensorData {
  name: string;
  type: ElementType;
  shape: number[];
  bytes: Uint8Array;
}

/** One sample: a tensor for each input of a model. */
export type Sample = readonly TensorData[];

/** The elements as an array over the bytes, or over an aligned copy; half precision as its bits. */
export function rawTensorElements({ type, bytes }: Pick<TensorData, "type" | "bytes">) {
  const { buffer, byteOffset, byteLength } =
    bytes.byteOffset % elementTypes[type].bytes === 0 ? bytes : new Uint8Array(bytes);
  const length = byteLength / elementTypes[type].bytes;
  switch (type) {
    case "float32":
      return new Float32Array(buffer, byteOffset, length);
    case "float64":
      return new Float64Array(buffer, byteOffset, length);
    case "int8":
      return new Int8Array(buffer, byteOffset, length);
    case "int16":
      return new Int16Array(buffer, byteOffset, length);
    case "int32":
      return new Int32Array(buffer, byteOffset, length);
    case "int64":
      return new BigInt64Array(buffer, byteOffset, length);
    case "uint16":
    case "float16":
      return new Uint16Array(buffer, byteOffset, length);
    case "uint32":
      return new Uint32Array(buffer, byteOffset, length);
    case "uint64":
      return new BigUint64Array(buffer, byteOffset, length);
    case "uint8":
    case "bool":
      return new Uint8Array(buffer, byteOffset, length);
  }
}

/** The class itself: processes that run models take its name away. */
const Halves = Float16Array;

/** The elements as numbers, or as bigints where 64 bits are needed. */
export function tensorElements(tensor: Pick<TensorData, "type" | "bytes">) {
  const elements = rawTensorElements(tensor);
  return tensor.type === "float16"
    ? new Halves(elements.buffer, elements.byteOffset, elements.length)
    : elements;
}

type NumberElements = Exclude<ReturnType<typeof tensorElements>, BigInt64Array | BigUint64Array>;

/** The elements as numbers; 64-bit integers are rounded to the nearest double. */
export function tensorNumbers(tensor: Pick<TensorData, "type" | "bytes">): NumberElements {
  const elements = tensorElements(tensor);
  return elements instanceof BigInt64Array || elements instanceof BigUint64Array
    ? Float64Array.from(elements, Number)
    : elements;
}

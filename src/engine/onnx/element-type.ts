import { TensorProto_DataType as DataType } from "./onnx_pb.js";

interface ElementType {
  readonly name: string;
  readonly bits: number;
}

/** Every element type with a fixed size. */
const elementTypes: ReadonlyMap<number, ElementType> = new Map([
  [DataType.FLOAT, { name: "float32", bits: 32 }],
  [DataType.UINT8, { name: "uint8", bits: 8 }],
  [DataType.INT8, { name: "int8", bits: 8 }],
  [DataType.UINT16, { name: "uint16", bits: 16 }],
  [DataType.INT16, { name: "int16", bits: 16 }],
  [DataType.INT32, { name: "int32", bits: 32 }],
  [DataType.INT64, { name: "int64", bits: 64 }],
  [DataType.BOOL, { name: "bool", bits: 8 }],
  [DataType.FLOAT16, { name: "float16", bits: 16 }],
  [DataType.DOUBLE, { name: "float64", bits: 64 }],
  [DataType.UINT32, { name: "uint32", bits: 32 }],
  [DataType.UINT64, { name: "uint64", bits: 64 }],
  [DataType.COMPLEX64, { name: "complex64", bits: 64 }],
  [DataType.COMPLEX128, { name: "complex128", bits: 128 }],
  [DataType.BFLOAT16, { name: "bfloat16", bits: 16 }],
  [DataType.FLOAT8E4M3FN, { name: "float8e4m3fn", bits: 8 }],
  [DataType.FLOAT8E4M3FNUZ, { name: "float8e4m3fnuz", bits: 8 }],
  [DataType.FLOAT8E5M2, { name: "float8e5m2", bits: 8 }],
  [DataType.FLOAT8E5M2FNUZ, { name: "float8e5m2fnuz", bits: 8 }],
  [DataType.FLOAT8E8M0, { name: "float8e8m0", bits: 8 }],
  [DataType.UINT4, { name: "uint4", bits: 4 }],
  [DataType.INT4, { name: "int4", bits: 4 }],
  [DataType.FLOAT4E2M1, { name: "float4e2m1", bits: 4 }],
  [DataType.UINT2, { name: "uint2", bits: 2 }],
  [DataType.INT2, { name: "int2", bits: 2 }],
]);

/** Types of the numbers that operators compute with and that can be quantized. */
export const floatTypes: ReadonlySet<number> = new Set([
  DataType.FLOAT,
  DataType.FLOAT16,
  DataType.BFLOAT16,
  DataType.DOUBLE,
]);

/** Bits of one element; undefined for strings and types that are not known. */
export function elementBits(dataType: number): number | undefined {
  return elementTypes.get(dataType)?.bits;
}

export function elementTypeName(dataType: number): string {
  return dataType === DataType.STRING
    ? "string"
    : (elementTypes.get(dataType)?.name ?? `type ${dataType}`);
}

/** The inverse of `elementTypeName`. */
export function findDataType(name: string): number | undefined {
  if (name === "string") return DataType.STRING;
  return [...elementTypes].find(([, type]) => type.name === name)?.[0];
}

/** Bytes of a raw tensor; elements of less than 8 bits are packed. */
export function rawByteLength(elements: number, dataType: number): number | undefined {
  const bits = elementBits(dataType);
  return bits === undefined ? undefined : Math.ceil((elements * bits) / 8);
}

import { concatBytes, lengthPrefix } from "./wire-format.ts";

/** Fields of TensorProto that say where content outside of the ONNX file is. */
export const externalDataField = 13;
export const dataLocationField = 14;

/** Encodes one entry of a TensorProto's `external_data`, tag included. */
export function encodeExternalDataEntry(key: string, value: string): Uint8Array {
  const text = new TextEncoder();
  const [keyBytes, valueBytes] = [text.encode(key), text.encode(value)];
  const entry = concatBytes([
    lengthPrefix(1, keyBytes.length),
    keyBytes,
    lengthPrefix(2, valueBytes.length),
    valueBytes,
  ]);
  return concatBytes([lengthPrefix(externalDataField, entry.length), entry]);
}

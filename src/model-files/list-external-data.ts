import { closeSync, openSync, statSync } from "node:fs";
import { ServiceError } from "../contract/errors.ts";
import { graphLimitError, graphLimits } from "../contract/models/graph-limits.ts";
import { limits } from "../contract/limits.ts";
import { ByteWindow } from "./byte-window.ts";
import { readField, readVarint, WireError, type WireField, wireType } from "./wire-format.ts";

type Message =
  | "model"
  | "training"
  | "graph"
  | "node"
  | "attribute"
  | "sparse"
  | "function"
  | "tensor";

/** Fields of ONNX messages that lead to tensors, by the number of the field. */
const children: Readonly<Record<Message, Readonly<Record<number, Message>>>> = {
  model: { 7: "graph", 20: "training", 25: "function" },
  training: { 1: "graph", 2: "graph" },
  graph: { 1: "node", 5: "tensor", 15: "sparse" },
  node: { 5: "attribute" },
  attribute: { 5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse", 23: "sparse" },
  sparse: { 1: "tensor", 2: "tensor" },
  function: { 7: "node", 11: "attribute" },
  tensor: {},
};

/** Fields of a tensor that is stored elsewhere, and the value of `data_location` that says so. */
const external = { data: 13, location: 14, isExternal: 1 } as const;
const entry = { key: 1, value: 2 } as const;
/** Longest location that is read, bytes: paths of files are shorter. */
const maxTextBytes = 4096;

/**
 * Paths of the files in which an ONNX file has external data, as it names them, in their order. Its
 * weights are not read. A file that is not an ONNX model refers to none.
 * @throws ServiceError model_unsupported for a graph beyond graphLimits; external_data_refused for
 * more files than a manifest can name
 */
export function listExternalData(file: string): string[] {
  const descriptor = openSync(file, "r");
  try {
    const bytes = ByteWindow.fromFile(descriptor, statSync(file).size);
    return distinctLocations(bytes).toSorted();
  } catch (error) {
    if (error instanceof WireError) return [];
    throw error;
  } finally {
    closeSync(descriptor);
  }
}

function distinctLocations(bytes: ByteWindow): string[] {
  const locations = new Set<string>();
  for (const location of readLocations(bytes)) {
    locations.add(location);
    if (locations.size < limits.manifestFiles) continue;
    const message = `The model has external data in more than ${limits.manifestFiles - 1} files`;
    throw new ServiceError("external_data_refused", message);
  }
  return [...locations];
}

/** In the order of the file, since going back reads a window for each message. */
function* readLocations(bytes: ByteWindow): Generator<string> {
  const count = { fields: 0, parts: 0 };
  const open: { message: Message; position: number; end: number }[] = [];
  open.push({ message: "model", position: 0, end: bytes.length });
  for (let last = open.at(-1); last !== undefined; last = open.at(-1)) {
    if (last.position >= last.end) {
      open.pop();
      continue;
    }
    const field = readField(bytes, last.position, last.end);
    last.position = field.end;
    countField(count);
    const message = children[last.message][field.number];
    if (message === undefined || field.wireType !== wireType.lengthDelimited) continue;
    if (message === "tensor" || message === "node") countPart(count);
    const location = message === "tensor" ? readTensorLocation(bytes, field, count) : undefined;
    if (location !== undefined) yield location;
    if (message !== "tensor") open.push({ message, position: field.bodyStart, end: field.end });
  }
}

interface Count {
  fields: number;
  parts: number;
}

function countField(count: Count): void {
  count.fields += 1;
  if (count.fields > graphLimits.fields) throw graphLimitError(`${graphLimits.fields} fields`);
}

function countPart(count: Count): void {
  count.parts += 1;
  if (count.parts > graphLimits.parts)
    throw graphLimitError(`${graphLimits.parts} nodes and tensors`);
}

function* readFields(bytes: ByteWindow, message: WireField, count: Count): Generator<WireField> {
  for (let position = message.bodyStart; position < message.end;) {
    const field = readField(bytes, position, message.end);
    countField(count);
    yield field;
    position = field.end;
  }
}

function readTensorLocation(
  bytes: ByteWindow,
  tensor: WireField,
  count: Count,
): string | undefined {
  let isExternal = false;
  let location: string | undefined;
  for (const field of readFields(bytes, tensor, count)) {
    if (field.number === external.location && field.wireType === wireType.varint) {
      const { value } = readVarint(bytes, field.bodyStart, field.end);
      isExternal = value === external.isExternal;
    } else if (field.number === external.data && field.wireType === wireType.lengthDelimited) {
      location = readLocation(bytes, field, count) ?? location;
    }
  }
  return isExternal ? location : undefined;
}

/** The value of an entry with the key `location`. */
function readLocation(bytes: ByteWindow, data: WireField, count: Count): string | undefined {
  const texts = new Map<number, string>();
  for (const field of readFields(bytes, data, count)) {
    if (field.end - field.bodyStart > maxTextBytes) return undefined;
    texts.set(field.number, new TextDecoder().decode(bytes.copy(field.bodyStart, field.end)));
  }
  return texts.get(entry.key) === "location" ? texts.get(entry.value) : undefined;
}

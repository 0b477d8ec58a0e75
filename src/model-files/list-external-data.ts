import { closeSync, openSync, statSync } from "node:fs";
import { ServiceError } from "../contract/errors.ts";
import { graphLimitError, graphLimits } from "../contract/models/graph-limits.ts";
import { limits } from "../contract/limits.ts";
import { FileBytes } from "./file-bytes.ts";

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

interface Range {
  readonly start: number;
  readonly end: number;
}

interface Part extends Range {
  readonly message: Message;
}

/**
 * Paths of the files in which an ONNX file has external data, as it names them, in their order. Its
 * weights are not read. A file that is no ONNX model refers to none.
 * @throws ServiceError model_unsupported for a graph beyond graphLimits; external_data_refused for
 * more files than a manifest can name
 */
export function listExternalData(file: string): string[] {
  const descriptor = openSync(file, "r");
  try {
    const bytes = new FileBytes(descriptor, statSync(file).size);
    return distinctLocations(bytes).toSorted();
  } finally {
    closeSync(descriptor);
  }
}

function distinctLocations(bytes: FileBytes): string[] {
  const locations = new Set<string>();
  for (const location of readLocations(bytes)) {
    locations.add(location);
    if (locations.size < limits.manifestFiles) continue;
    const message = `The model has external data in more than ${limits.manifestFiles - 1} files`;
    throw new ServiceError("external_data_refused", message);
  }
  return [...locations];
}

function* readLocations(bytes: FileBytes): Generator<string> {
  let parts = 0;
  for (const { message, ...range } of readMessages(bytes)) {
    if (message === "tensor" || message === "node") parts += 1;
    if (parts > graphLimits.parts) throw graphLimitError(`${graphLimits.parts} nodes and tensors`);
    const location = message === "tensor" ? readTensorLocation(bytes, range) : undefined;
    if (location !== undefined) yield location;
  }
}

/** In the order of the file, since going back reads a window for each message. */
function* readMessages(bytes: FileBytes): Generator<Part> {
  const open = [openMessage(bytes, { message: "model", start: 0, end: bytes.length })];
  for (let last = open.at(-1); last !== undefined; last = open.at(-1)) {
    const { done, value: field } = last.fields.next();
    if (done === true) {
      open.pop();
      continue;
    }
    const message = children[last.message][field.number];
    if (message === undefined || field.value !== undefined) continue;
    const part = { message, start: field.start, end: field.end };
    yield part;
    if (message !== "tensor") open.push(openMessage(bytes, part));
  }
}

function openMessage(
  bytes: FileBytes,
  { message, start, end }: Range & { readonly message: Message },
) {
  return { message, fields: bytes.fields(start, end) };
}

function readTensorLocation(bytes: FileBytes, { start, end }: Range): string | undefined {
  let isExternal = false;
  let location: string | undefined;
  for (const field of bytes.fields(start, end)) {
    if (field.number === external.location) isExternal = field.value === external.isExternal;
    if (field.number === external.data) location ??= readLocation(bytes, field);
  }
  return isExternal ? location : undefined;
}

/** The value of an entry with the key `location`. */
function readLocation(bytes: FileBytes, { start, end }: Range): string | undefined {
  const texts = new Map<number, string>();
  for (const field of bytes.fields(start, end)) {
    if (field.end - field.start > maxTextBytes) return undefined;
    texts.set(field.number, bytes.text(field.start, field.end));
  }
  return texts.get(entry.key) === "location" ? texts.get(entry.value) : undefined;
}

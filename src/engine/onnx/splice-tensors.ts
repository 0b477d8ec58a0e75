import type { DescMessage } from "@bufbuild/protobuf";
import type { ByteWindow } from "../../model-files/byte-window.ts";
import { type GraphLimits, graphLimitError } from "../../contract/models/graph-limits.ts";
import { ModelProtoSchema, NodeProtoSchema, TensorProtoSchema } from "./onnx_pb.js";
import {
  readField,
  varintBytes,
  WireError,
  type WireField,
  wireType,
} from "../../model-files/wire-format.ts";
import { checkPacked, checkWireType, messageShape } from "./message-shape.ts";

/** Nesting of messages; a subgraph takes three levels. The decoder stops at 100. */
const maxDepth = 90;

/** Replaces bytes of a message by others and, after them, by a payload that is not read yet. */
export interface Splice {
  readonly start: number;
  readonly end: number;
  readonly bytes: Uint8Array;
  readonly payloadSlot: { readonly payload: number; readonly length: number } | undefined;
}

export type TensorEditor = (fields: readonly WireField[], bytes: ByteWindow) => readonly Splice[];

interface Walk {
  readonly bytes: ByteWindow;
  readonly editTensor: TensorEditor;
  readonly splices: Splice[];
  readonly limits: GraphLimits;
  fields: number;
  parts: number;
}

/**
 * Walks an encoded ModelProto and lets `editTensor` replace bytes of each TensorProto.
 * @returns those replacements and the changed lengths of all enclosing messages, in order
 * @throws WireError where the bytes are not a message of that shape, or one nested too deep;
 * ServiceError model_unsupported where it has more than allowed
 */
export function spliceTensors(
  bytes: ByteWindow,
  editTensor: TensorEditor,
  limits: GraphLimits,
): Splice[] {
  const walk: Walk = { bytes, editTensor, splices: [], limits, fields: 0, parts: 0 };
  walkMessage(walk, ModelProtoSchema, { start: 0, end: bytes.length, depth: 0 });
  return walk.splices.sort((a, b) => a.start - b.start);
}

interface MessageRange {
  readonly start: number;
  readonly end: number;
  readonly depth: number;
}

/** @returns by how many bytes the message grows */
function walkMessage(walk: Walk, message: DescMessage, range: MessageRange): number {
  if (range.depth > maxDepth) throw new WireError(`Messages are nested more than ${maxDepth} deep`);
  if (message === TensorProtoSchema || message === NodeProtoSchema) countPart(walk);
  if (message === TensorProtoSchema) return walkTensor(walk, range);
  const { children, packed } = messageShape(message);
  let growth = 0;
  for (let position = range.start; position < range.end;) {
    const field = readNextField(walk, message, position, range.end);
    const child = children.get(field.number);
    if (child !== undefined && field.wireType === wireType.lengthDelimited) {
      const { bodyStart: start, end } = field;
      const inner = walkMessage(walk, child, { start, end, depth: range.depth + 1 });
      if (inner !== 0) growth += inner + replaceLengthPrefix(walk, field, inner);
    } else if (packed.has(field.number)) {
      countFields(walk, field.end - field.bodyStart);
    }
    position = field.end;
  }
  return growth;
}

function replaceLengthPrefix(walk: Walk, field: WireField, growth: number): number {
  const bytes = varintBytes(field.end - field.bodyStart + growth);
  walk.splices.push({
    start: field.lengthStart,
    end: field.bodyStart,
    bytes,
    payloadSlot: undefined,
  });
  return bytes.length - (field.bodyStart - field.lengthStart);
}

function walkTensor(walk: Walk, range: MessageRange): number {
  const fields: WireField[] = [];
  for (let position = range.start; position < range.end;) {
    const field = readNextField(walk, TensorProtoSchema, position, range.end);
    fields.push(field);
    position = field.end;
  }
  let growth = 0;
  for (const splice of walk.editTensor(fields, walk.bytes)) {
    walk.splices.push(splice);
    growth += splice.bytes.length + (splice.payloadSlot?.length ?? 0) - (splice.end - splice.start);
  }
  return growth;
}

function countFields(walk: Walk, count: number): void {
  walk.fields += count;
  if (walk.fields > walk.limits.fields) throw graphLimitError(`${walk.limits.fields} fields`);
}

function countPart(walk: Walk): void {
  walk.parts += 1;
  if (walk.parts > walk.limits.parts)
    throw graphLimitError(`${walk.limits.parts} nodes and tensors`);
}

function readNextField(
  walk: Walk,
  message: DescMessage,
  position: number,
  limit: number,
): WireField {
  countFields(walk, 1);
  const field = readField(walk.bytes, position, limit);
  checkWireType(field, message);
  const width =
    field.wireType === wireType.lengthDelimited
      ? messageShape(message).packed.get(field.number)
      : undefined;
  if (width !== undefined) checkPacked(walk.bytes, field, width);
  return field;
}

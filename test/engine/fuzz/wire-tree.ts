import type { DescMessage } from "@bufbuild/protobuf";
import { ByteWindow } from "../../../src/model-files/byte-window.ts";
import { messageShape } from "../../../src/engine/onnx/message-shape.ts";
import { ModelProtoSchema } from "../../../src/engine/onnx/onnx_pb.js";
import {
  concatBytes,
  readField,
  varintBytes,
  wireType,
} from "../../../src/model-files/wire-format.ts";
import type { WireField } from "../../../src/model-files/wire-format.ts";

/** A field of an encoded model with the fields it lies in, the innermost first. */
export interface TreeField extends WireField {
  readonly message: DescMessage;
  readonly ancestors: readonly WireField[];
}

/** Every field of an encoded ModelProto at any depth; as far as the bytes are one. */
export function listFields(bytes: Uint8Array): TreeField[] {
  const fields: TreeField[] = [];
  const window = ByteWindow.fromBytes(bytes);
  const walk = (
    message: DescMessage,
    range: { start: number; end: number; ancestors: readonly WireField[] },
  ): void => {
    const { children } = messageShape(message);
    for (let position = range.start; position < range.end;) {
      const field = readField(window, position, range.end);
      fields.push({ ...field, message, ancestors: range.ancestors });
      const child = children.get(field.number);
      if (
        child !== undefined &&
        field.wireType === wireType.lengthDelimited &&
        range.ancestors.length < 80
      ) {
        walk(child, {
          start: field.bodyStart,
          end: field.end,
          ancestors: [field, ...range.ancestors],
        });
      }
      position = field.end;
    }
  };
  try {
    walk(ModelProtoSchema, { start: 0, end: bytes.length, ancestors: [] });
  } catch {
    // Bytes that an earlier mutation broke: the fields before the break are enough to go on with.
  }
  return fields;
}

interface Replacement {
  readonly start: number;
  readonly end: number;
  readonly bytes: Uint8Array;
}

/** Replaces a range of bytes and sets the lengths of all messages around it right. */
export function replaceWithin(
  bytes: Uint8Array,
  ancestors: readonly WireField[],
  replacement: Replacement,
): Uint8Array {
  const changes = [replacement];
  let growth = replacement.bytes.length - (replacement.end - replacement.start);
  for (const { lengthStart, bodyStart, end } of ancestors) {
    const length = varintBytes(end - bodyStart + growth);
    changes.push({ start: lengthStart, end: bodyStart, bytes: length });
    growth += length.length - (bodyStart - lengthStart);
  }
  const parts: Uint8Array[] = [];
  let position = 0;
  for (const change of changes.toSorted((a, b) => a.start - b.start)) {
    parts.push(bytes.subarray(position, change.start), change.bytes);
    position = change.end;
  }
  return concatBytes([...parts, bytes.subarray(position)]);
}

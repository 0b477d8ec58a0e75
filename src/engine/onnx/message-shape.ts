import { ScalarType } from "@bufbuild/protobuf";
import type { DescField, DescMessage } from "@bufbuild/protobuf";
import type { ByteWindow } from "../../model-files/byte-window.ts";
import { type WireField, WireError, wireType } from "../../model-files/wire-format.ts";

/** What the wire format leaves open: which fields are messages, and which are lists of numbers. */
interface MessageShape {
  readonly children: ReadonlyMap<number, DescMessage>;
  /** Bytes of each number of a list; 0 where they are varints. */
  readonly packed: ReadonlyMap<number, number>;
  /** Wire types that values of a field can have. */
  readonly wireTypes: ReadonlyMap<number, readonly number[]>;
}

const fixedBytes: ReadonlyMap<DescField["scalar"], number> = new Map([
  [ScalarType.FLOAT, 4],
  [ScalarType.DOUBLE, 8],
]);

const shapes = new Map<DescMessage, MessageShape>();

export function messageShape(message: DescMessage): MessageShape {
  let shape = shapes.get(message);
  if (shape === undefined) {
    shape = describeFields(message.fields);
    shapes.set(message, shape);
  }
  return shape;
}

function describeFields(fields: readonly DescField[]): MessageShape {
  const children = new Map<number, DescMessage>();
  const packed = new Map<number, number>();
  const wireTypes = new Map<number, readonly number[]>();
  for (const field of fields) {
    wireTypes.set(field.number, listWireTypes(field));
    if (field.message) children.set(field.number, field.message);
    if (isNumberList(field)) packed.set(field.number, fixedBytes.get(field.scalar) ?? 0);
  }
  return { children, packed, wireTypes };
}

/** Lists of numbers can be packed, whatever their definition says. */
function listWireTypes(field: DescField): readonly number[] {
  if (isNumberList(field)) return [wireType.lengthDelimited, numberWireType(field.scalar)];
  if (field.fieldKind === "enum") return [wireType.varint];
  const isText = field.scalar === ScalarType.STRING || field.scalar === ScalarType.BYTES;
  const isDelimited = field.message !== undefined || isText;
  return [isDelimited ? wireType.lengthDelimited : numberWireType(field.scalar)];
}

function numberWireType(scalar: DescField["scalar"]): number {
  if (scalar === ScalarType.FLOAT) return wireType.fixed32;
  return scalar === ScalarType.DOUBLE ? wireType.fixed64 : wireType.varint;
}

/**
 * Checks that a field is encoded as its definition says: the decoder takes it for that, whatever
 * its wire type is, and reads on elsewhere than the next field. @throws WireError
 */
export function checkWireType(field: WireField, message: DescMessage): void {
  const expected = messageShape(message).wireTypes.get(field.number);
  if (expected === undefined || expected.includes(field.wireType)) return;
  const name = `Field ${field.number} of ${message.typeName} at byte ${field.start}`;
  throw new WireError(`${name} has wire type ${field.wireType}`);
}

/** Checks that a list does not end within a number: the decoder would read on. @throws WireError */
export function checkPacked(bytes: ByteWindow, field: WireField, width: number): void {
  const length = field.end - field.bodyStart;
  const isWhole =
    width === 0 ? length === 0 || bytes.byteAt(field.end - 1) < 0x80 : length % width === 0;
  if (!isWhole) throw new WireError(`The list at byte ${field.start} ends within a number`);
}

function isNumberList(field: DescField): boolean {
  const isScalarList = field.fieldKind === "list" && field.listKind === "scalar";
  return isScalarList && field.scalar !== ScalarType.STRING && field.scalar !== ScalarType.BYTES;
}

import { readSync } from "node:fs";
import { graphLimitError, graphLimits } from "../contract/models/graph-limits.ts";

/** Bytes that are read at once. */
const windowBytes = 64 * 1024;
const maxVarintBytes = 10;

/** A field of a protobuf message: a number, or the place of its content. */
interface ProtobufField {
  readonly number: number;
  /** Undefined for fields with content. */
  readonly value: number | undefined;
  readonly start: number;
  readonly end: number;
}

/** The bytes of an open file, of which only those are read that are asked for. */
export class FileBytes {
  readonly length: number;
  readonly #descriptor: number;
  readonly #window = Buffer.alloc(windowBytes);
  #start = 0;
  #end = 0;
  #fieldsRead = 0;

  constructor(descriptor: number, length: number) {
    this.#descriptor = descriptor;
    this.length = length;
  }

  /**
   * The fields of the message between two places, as far as it is one.
   * @throws ServiceError model_unsupported where more were read of the file than a graph may have
   */
  *fields(start: number, end: number): Generator<ProtobufField> {
    for (let position = start; position < end;) {
      const field = this.#readField(position, end);
      if (field === undefined) return;
      this.#countField();
      yield field;
      position = field.end;
    }
  }

  text(start: number, end: number): string {
    const bytes = Uint8Array.from({ length: end - start }, (_, i) => this.#byteAt(start + i) ?? 0);
    return new TextDecoder().decode(bytes);
  }

  #countField(): void {
    this.#fieldsRead += 1;
    if (this.#fieldsRead > graphLimits.fields)
      throw graphLimitError(`${graphLimits.fields} fields`);
  }

  #readField(position: number, limit: number): ProtobufField | undefined {
    const tag = this.#readVarint(position);
    if (tag === undefined || tag.value < 8) return undefined;
    const number = Math.floor(tag.value / 8);
    const content = this.#readContent(tag.value % 8, tag.end);
    return content === undefined || content.end > limit ? undefined : { number, ...content };
  }

  #readContent(wireType: number, start: number): Omit<ProtobufField, "number"> | undefined {
    const number = wireType === 0 || wireType === 2 ? this.#readVarint(start) : undefined;
    switch (wireType) {
      case 0:
        return number && { value: number.value, start, end: number.end };
      case 1:
        return { value: 0, start, end: start + 8 };
      case 2:
        return number && { value: undefined, start: number.end, end: number.end + number.value };
      case 5:
        return { value: 0, start, end: start + 4 };
      default:
        return undefined;
    }
  }

  #readVarint(position: number): { value: number; end: number } | undefined {
    let value = 0;
    for (let i = 0; i < maxVarintBytes; i++) {
      const byte = this.#byteAt(position + i);
      if (byte === undefined) return undefined;
      value += (byte & 0x7f) * 2 ** (7 * i);
      if (byte < 0x80) return { value, end: position + i + 1 };
    }
    return undefined;
  }

  #byteAt(position: number): number | undefined {
    if (position >= this.length) return undefined;
    if (position < this.#start || position >= this.#end) {
      const bytes = readSync(this.#descriptor, this.#window, 0, windowBytes, position);
      this.#start = position;
      this.#end = position + bytes;
      if (bytes === 0) return undefined;
    }
    return this.#window[position - this.#start];
  }
}

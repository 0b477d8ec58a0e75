import type { ByteWindow } from "./byte-window.ts";
import {
  dataLocationField,
  encodeExternalDataEntry,
  externalDataField,
} from "./external-data-entry.ts";
import { LiteralBuilder } from "./literal-builder.ts";
import type { FileLayout, Placement } from "./model-layout.ts";
import type { OnnxModel, Payload } from "./onnx-model.ts";
import { payloadField, payloadKey } from "./payload.ts";
import type { Splice } from "./splice-tensors.ts";
import { concatBytes, lengthPrefix, readField } from "./wire-format.ts";
import type { WireField } from "./wire-format.ts";

/** Alignment for memory maps: a page; for large tensors, Windows' allocation granularity. */
const alignment = { small: 4096, large: 65_536, largeFrom: 1024 * 1024 } as const;

export interface LayoutOptions {
  /** Name of the ONNX file without its extension. */
  readonly name: string;
  /** Number of files that external data is spread over. */
  readonly shards: number;
  /** Shard of a payload, from 0. */
  readonly assignShard: (payload: number) => number;
}

/** Assigns each payload its places in a model's files. */
export class LayoutBuilder {
  readonly placements = new Map<number, Placement[]>();
  readonly #model: OnnxModel;
  readonly #options: LayoutOptions;
  readonly #external: ReadonlySet<number>;
  readonly #shardBytes: number[];

  /** `external` has the indices of the payloads that go into external data. */
  constructor(model: OnnxModel, options: LayoutOptions, external: ReadonlySet<number>) {
    this.#model = model;
    this.#options = options;
    this.#external = external;
    this.#shardBytes = Array.from({ length: options.shards }, () => 0);
  }

  /** Replaces a reference to a payload by room for the content, or by entries of external data. */
  editTensor(fields: readonly WireField[], bytes: ByteWindow): Splice[] {
    const reference = fields.find((field) => field.number === externalDataField);
    const index = reference === undefined ? undefined : referencedPayload(bytes, reference);
    const payload = index === undefined ? undefined : this.#model.payloads[index];
    if (reference === undefined || index === undefined || payload === undefined) return [];
    if (this.#external.has(index)) {
      const placement = this.#placeExternally(index, payload.length);
      return [replaceField(reference, encodeExternalData(placement, payload.length))];
    }
    const locations = fields.filter((field) => field.number === dataLocationField);
    return [
      createPayloadSlot(reference, index, payload),
      ...locations.map((location) => replaceField(location, new Uint8Array())),
    ];
  }

  layoutModelFile(skeleton: ByteWindow, splices: readonly Splice[]): FileLayout {
    const name = `${this.#options.name}.onnx`;
    const content = new LiteralBuilder();
    let position = 0;
    for (const { start, end, bytes, payloadSlot } of splices) {
      content.append(skeleton.copy(position, start));
      content.append(bytes);
      position = end;
      if (payloadSlot === undefined) continue;
      this.#place(payloadSlot.payload, { file: name, offset: content.length });
      content.skip(payloadSlot.length);
    }
    content.append(skeleton.copy(position, skeleton.length));
    return { name, kind: "model", bytes: content.length, literals: content.finish() };
  }

  weightFiles(): FileLayout[] {
    return this.#shardBytes.flatMap((bytes, shard) =>
      bytes === 0
        ? []
        : [{ name: this.#shardName(shard), kind: "weights" as const, bytes, literals: [] }],
    );
  }

  #placeExternally(index: number, length: number): Placement {
    const [known] = this.placements.get(index) ?? [];
    if (known !== undefined) return known;
    const shard = this.#options.assignShard(index);
    const unit = length > alignment.largeFrom ? alignment.large : alignment.small;
    const offset = Math.ceil((this.#shardBytes[shard] ?? 0) / unit) * unit;
    this.#shardBytes[shard] = offset + length;
    const placement = { file: this.#shardName(shard), offset };
    this.#place(index, placement);
    return placement;
  }

  #place(index: number, placement: Placement): void {
    const places = this.placements.get(index);
    if (places === undefined) this.placements.set(index, [placement]);
    else places.push(placement);
  }

  #shardName(shard: number): string {
    const digits = (count: number) => String(count).padStart(5, "0");
    return `${this.#options.name}-${digits(shard + 1)}-of-${digits(this.#options.shards)}.bin`;
  }
}

function replaceField({ start, end }: WireField, bytes: Uint8Array): Splice {
  return { start, end, bytes, payloadSlot: undefined };
}

function createPayloadSlot({ start, end }: WireField, index: number, payload: Payload): Splice {
  const field = payload.kind === "file" ? payload.field : payloadField.raw;
  return {
    start,
    end,
    bytes: lengthPrefix(field, payload.length),
    payloadSlot: { payload: index, length: payload.length },
  };
}

/** Index of the payload that an encoded `external_data` entry names. */
function referencedPayload(bytes: ByteWindow, entry: WireField): number | undefined {
  const text = new TextDecoder();
  const key = readField(bytes, entry.bodyStart, entry.end);
  if (text.decode(bytes.copy(key.bodyStart, key.end)) !== payloadKey) return undefined;
  const value = readField(bytes, key.end, entry.end);
  return Number(text.decode(bytes.copy(value.bodyStart, value.end)));
}

function encodeExternalData({ file, offset }: Placement, length: number): Uint8Array {
  return concatBytes([
    encodeExternalDataEntry("location", file),
    encodeExternalDataEntry("offset", String(offset)),
    encodeExternalDataEntry("length", String(length)),
  ]);
}

import { toBinary } from "@bufbuild/protobuf";
import { ServiceError } from "../../contract/errors.ts";
import { ByteWindow } from "./byte-window.ts";
import { modelGraphs, modelTensors } from "./model-traversal.ts";
import { ModelProtoSchema } from "./onnx_pb.js";
import type { OnnxModel, Payload } from "./payload.ts";
import { payloadField, payloadIndex, payloadKey, findPayload } from "./payload.ts";
import { spliceTensors } from "./splice-tensors.ts";
import type { Splice } from "./splice-tensors.ts";
import { concatBytes, lengthPrefix, readField } from "./wire-format.ts";
import type { WireField } from "./wire-format.ts";

/** Largest model in one file. Protobuf refuses messages of 2 GiB, and readers differ on the last of it. */
const maxInlineBytes = 1_500_000_000;
const maxProtobufBytes = 2 ** 31 - 1;
/** Smaller content stays in the graph, where shape inference finds it. */
const minExternalBytes = 1024;
/** Alignment of external data, so that it can be mapped: a page, and Windows' allocation granularity for large tensors. */
const alignment = { small: 4096, large: 65_536, largeFrom: 1024 * 1024 } as const;

const externalDataField = 13;
const dataLocationField = 14;

/** Bytes of a file that are known before any weight is. */
interface Literal {
  readonly offset: number;
  readonly bytes: Uint8Array;
}

export interface FileLayout {
  readonly name: string;
  readonly kind: "model" | "weights" | "manifest";
  readonly bytes: number;
  readonly literals: readonly Literal[];
}

/** Where a payload goes. */
export interface Placement {
  readonly file: string;
  readonly offset: number;
}

export interface ModelLayout {
  readonly files: readonly FileLayout[];
  /** Places of each payload by its index; a payload that the graph holds twice has two. */
  readonly placements: ReadonlyMap<number, readonly Placement[]>;
}

export interface LayoutOptions {
  /** Name of the ONNX file without its extension. */
  readonly name: string;
  /** Number of files that external data is spread over. One, and less than 1.5 GB: everything goes into the ONNX file. */
  readonly shards: number;
  /** Shard of a payload, from 0. */
  readonly assignShard: (payload: number) => number;
}

/**
 * Lays out a model's files to the byte without its weights' content.
 * @throws ServiceError model_unsupported where the ONNX file would be larger than protobuf allows
 */
export function layoutModel(model: OnnxModel, options: LayoutOptions): ModelLayout {
  const skeleton = ByteWindow.fromBytes(toBinary(ModelProtoSchema, model.proto));
  const inlineBytes = skeleton.length + referencedBytes(model);
  const isExternal = options.shards > 1 || inlineBytes >= maxInlineBytes;
  const layout = new LayoutBuilder(
    model,
    options,
    isExternal ? initializerPayloads(model) : new Set(),
  );
  const splices = spliceTensors(skeleton, (fields, bytes) => layout.editTensor(fields, bytes));
  const modelFile = layout.layoutModelFile(skeleton, splices);
  if (modelFile.bytes > maxProtobufBytes) {
    throw new ServiceError(
      "model_unsupported",
      `The ONNX file would have ${modelFile.bytes} bytes, and may have ${maxProtobufBytes}: its subgraphs or functions hold too much`,
    );
  }
  return { files: [modelFile, ...layout.weightFiles()], placements: layout.placements };
}

function referencedBytes(model: OnnxModel): number {
  let bytes = 0;
  for (const tensor of modelTensors(model.proto)) bytes += findPayload(model, tensor)?.length ?? 0;
  return bytes;
}

/** Payloads of initializers; those in attributes have to stay in the ONNX file. */
function initializerPayloads(model: OnnxModel): Set<number> {
  const indices = new Set<number>();
  for (const graph of modelGraphs(model.proto)) {
    for (const tensor of graph.initializer) {
      const index = payloadIndex(tensor);
      const payload = index === undefined ? undefined : model.payloads[index];
      if (index !== undefined && payload !== undefined && canBeExternal(payload))
        indices.add(index);
    }
  }
  return indices;
}

function canBeExternal(payload: Payload): boolean {
  const isRaw =
    payload.kind === "computed" ||
    payload.field === payloadField.raw ||
    payload.field === payloadField.float;
  return isRaw && payload.length >= minExternalBytes;
}

class LayoutBuilder {
  readonly placements = new Map<number, Placement[]>();
  readonly #model: OnnxModel;
  readonly #options: LayoutOptions;
  readonly #external: ReadonlySet<number>;
  readonly #shardBytes: number[];

  constructor(model: OnnxModel, options: LayoutOptions, external: ReadonlySet<number>) {
    this.#model = model;
    this.#options = options;
    this.#external = external;
    this.#shardBytes = Array.from({ length: options.shards }, () => 0);
  }

  /** Replaces a tensor's reference to a payload by room for the content, or by a description of external data. */
  editTensor(fields: readonly WireField[], bytes: ByteWindow): Splice[] {
    const reference = fields.find((field) => field.number === externalDataField);
    const index = reference === undefined ? undefined : referencedPayload(bytes, reference);
    const payload = index === undefined ? undefined : this.#model.payloads[index];
    if (reference === undefined || index === undefined || payload === undefined) return [];
    const { start, end } = reference;
    if (this.#external.has(index)) {
      const { file, offset } = this.#placeExternally(index, payload.length);
      return [
        {
          start,
          end,
          bytes: encodeExternalData(file, offset, payload.length),
          payloadSlot: undefined,
        },
      ];
    }
    const field = payload.kind === "file" ? payload.field : payloadField.raw;
    const content = {
      start,
      end,
      bytes: lengthPrefix(field, payload.length),
      payloadSlot: { payload: index, length: payload.length },
    };
    const locations = fields.filter((other) => other.number === dataLocationField);
    return [
      content,
      ...locations.map((location) => ({
        start: location.start,
        end: location.end,
        bytes: new Uint8Array(),
        payloadSlot: undefined,
      })),
    ];
  }

  layoutModelFile(skeleton: ByteWindow, splices: readonly Splice[]): FileLayout {
    const name = `${this.#options.name}.onnx`;
    const literals: Literal[] = [];
    let pending: Uint8Array[] = [];
    let pendingBytes = 0;
    let flushed = 0;
    const append = (bytes: Uint8Array) => {
      pending.push(bytes);
      pendingBytes += bytes.length;
    };
    let position = 0;
    for (const splice of splices) {
      append(skeleton.copy(position, splice.start));
      append(splice.bytes);
      position = splice.end;
      if (splice.payloadSlot === undefined) continue;
      literals.push({ offset: flushed, bytes: concatBytes(pending) });
      flushed += pendingBytes;
      pending = [];
      pendingBytes = 0;
      this.#place(splice.payloadSlot.payload, { file: name, offset: flushed });
      flushed += splice.payloadSlot.length;
    }
    append(skeleton.copy(position, skeleton.length));
    literals.push({ offset: flushed, bytes: concatBytes(pending) });
    return { name, kind: "model", bytes: flushed + pendingBytes, literals };
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

/** Index of the payload that an encoded `external_data` entry names. */
function referencedPayload(bytes: ByteWindow, entry: WireField): number | undefined {
  const text = new TextDecoder();
  const key = readField(bytes, entry.bodyStart, entry.end);
  if (text.decode(bytes.copy(key.bodyStart, key.end)) !== payloadKey) return undefined;
  const value = readField(bytes, key.end, entry.end);
  return Number(text.decode(bytes.copy(value.bodyStart, value.end)));
}

function encodeExternalData(location: string, offset: number, length: number): Uint8Array {
  const text = new TextEncoder();
  const entries = Object.entries({ location, offset: String(offset), length: String(length) });
  return concatBytes(
    entries.flatMap(([key, value]) => {
      const keyBytes = text.encode(key);
      const valueBytes = text.encode(value);
      const entry = [
        lengthPrefix(1, keyBytes.length),
        keyBytes,
        lengthPrefix(2, valueBytes.length),
        valueBytes,
      ];
      return [
        lengthPrefix(
          externalDataField,
          entry.reduce((sum, part) => sum + part.length, 0),
        ),
        ...entry,
      ];
    }),
  );
}

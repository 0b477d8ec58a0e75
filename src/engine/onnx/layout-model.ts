import { toBinary } from "@bufbuild/protobuf";
import { at } from "./at.ts";
import { ByteWindow } from "../../model-files/byte-window.ts";
import { rawByteLength } from "./element-type.ts";
import { dataLocationField, encodeExternalDataEntry, externalDataField } from "./external-data.ts";
import { modelGraphs, modelTensors } from "./model-traversal.ts";
import { ModelProtoSchema } from "./onnx_pb.js";
import type { OnnxModel, Payload } from "./onnx-model.ts";
import { findPayload, payloadField, payloadIndex, payloadKey } from "./payload.ts";
import { type Splice, spliceTensors, type TensorEditor } from "./splice-tensors.ts";
import { elementCount } from "./tensor-shape.ts";
import {
  concatBytes,
  lengthPrefix,
  readField,
  type WireField,
} from "../../model-files/wire-format.ts";
import { ServiceError } from "../../contract/errors.ts";
import { graphLimits } from "../../contract/models/graph-limits.ts";

/** Largest model in one file. Protobuf refuses 2 GiB, and readers differ just below. */
const maxInlineBytes = 1_500_000_000;
const maxProtobufBytes = 2 ** 31 - 1;
/** Smaller content stays in the graph, where shape inference finds it. */
const minExternalBytes = 1024;

/**
 * Lays out a model's files to the byte without its weights' content. With one shard and less than
 * 1.5 GB, everything goes into the ONNX file, but for weights of a checkpoint: a language model is
 * loaded to be run, and ONNX Runtime holds an ONNX file twice while it loads it.
 * @throws ServiceError model_unsupported where the ONNX file would be larger than protobuf allows,
 * or the graph larger than can be opened
 */
export function layoutModel(model: OnnxModel, options: LayoutOptions): ModelLayout {
  const skeleton = ByteWindow.fromBytes(toBinary(ModelProtoSchema, model.proto));
  const inlineBytes = skeleton.length + referencedBytes(model);
  const isCheckpoint = model.payloads.some(({ kind }) => kind === "checkpoint");
  const isExternal = isCheckpoint || options.shards > 1 || inlineBytes >= maxInlineBytes;
  const external = isExternal ? initializerPayloads(model) : new Set<number>();
  const builder = new LayoutBuilder(model, options, external);
  const editTensor: TensorEditor = (fields, bytes) => builder.editTensor(fields, bytes);
  // Inlined functions and added nodes must not make a result that cannot be opened again.
  const splices = spliceTensors(skeleton, editTensor, graphLimits);
  const modelFile = builder.layoutModelFile(skeleton, splices);
  checkModelFileBytes(modelFile.bytes);
  return { files: [modelFile, ...builder.weightFiles()], placements: builder.placements };
}

function checkModelFileBytes(bytes: number): void {
  if (bytes <= maxProtobufBytes) return;
  const size = `${bytes} bytes, and may have ${maxProtobufBytes}`;
  throw new ServiceError(
    "model_unsupported",
    `The ONNX file would have ${size}: its subgraphs or functions hold too much`,
  );
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
      if (index === undefined || payload === undefined) continue;
      const bytes = rawByteLength(elementCount(tensor.dims), tensor.dataType);
      if (bytes !== undefined && canBeExternal(payload)) indices.add(index);
    }
  }
  return indices;
}

function canBeExternal(payload: Payload): boolean {
  const isRaw =
    payload.kind !== "file" ||
    payload.field === payloadField.raw ||
    payload.field === payloadField.float;
  return isRaw && payload.length >= minExternalBytes;
}

/** Alignment for memory maps: a page; for large tensors, Windows' allocation granularity. */
const alignment = { small: 4096, large: 65_536, largeFrom: 1024 * 1024 } as const;

interface LayoutOptions {
  /** Name of the ONNX file without its extension. */
  readonly name: string;
  /** Number of files that external data is spread over. */
  readonly shards: number;
  /** Shard of a payload, from 0. */
  readonly assignShard: (payload: number) => number;
}

/** Assigns each payload its places in a model's files. */
class LayoutBuilder {
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
    const offset = Math.ceil(at(this.#shardBytes, shard) / unit) * unit;
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

/** Collects the bytes of a file that are known, around gaps for those that are not. */
class LiteralBuilder {
  /** Bytes of the file so far, gaps included. */
  length = 0;
  readonly #literals: Literal[] = [];
  #start = 0;
  #pending: Uint8Array[] = [];

  append(bytes: Uint8Array): void {
    this.#pending.push(bytes);
    this.length += bytes.length;
  }

  /** Leaves a gap. */
  skip(length: number): void {
    this.#flush();
    this.length += length;
    this.#start = this.length;
  }

  finish(): readonly Literal[] {
    this.#flush();
    return this.#literals;
  }

  #flush(): void {
    this.#literals.push({ offset: this.#start, bytes: concatBytes(this.#pending) });
    this.#pending = [];
  }
}

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

/** A model's files to the byte, without the content of its weights. */
export interface ModelLayout {
  readonly files: readonly FileLayout[];
  /** Places of each payload by its index; a payload that two tensors refer to has two. */
  readonly placements: ReadonlyMap<number, readonly Placement[]>;
}

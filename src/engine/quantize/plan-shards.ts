import { at } from "../onnx/at.ts";
import { ServiceError } from "../../contract/errors.ts";
import { maxShards } from "../../contract/jobs/artifact.ts";
import { payloadIndex, findPayload } from "../onnx/payload.ts";
import { elementCount } from "../onnx/tensor-shape.ts";
import type { OnnxModel } from "../onnx/onnx-model.ts";
import { modelTensors } from "../onnx/model-traversal.ts";
import { rawByteLength } from "../onnx/element-type.ts";
import type { TensorProto } from "../onnx/onnx_pb.js";

export interface ShardPlan {
  readonly count: number;
  /** Bytes of tensors in each shard. */
  readonly bytes: readonly number[];
  /** Shard of a tensor whose content is outside of the graph, by its payload. */
  readonly findShard: (payload: number) => number;
}

/**
 * Divides a model's tensors, in the order of the graph, into shards of at most `maxShardBytes`. A
 * tensor that is larger gets a shard of its own.
 * @throws ServiceError recipe_unsupported if that gives too many files
 */
export function planShards(model: OnnxModel, maxShardBytes: number): ShardPlan {
  const bytes = [0];
  const shardByPayload = new Map<number, number>();
  for (const tensor of modelTensors(model.proto)) {
    const size = tensorBytes(model, tensor);
    const filled = at(bytes, bytes.length - 1);
    if (filled > 0 && filled + size > maxShardBytes) bytes.push(0);
    const shard = bytes.length - 1;
    bytes[shard] = at(bytes, shard) + size;
    const index = payloadIndex(tensor);
    if (index !== undefined) shardByPayload.set(index, shard);
  }
  if (bytes.length > maxShards) throw tooManyShardsError(maxShardBytes, bytes.length);
  const findShard = (payload: number) => {
    const shard = shardByPayload.get(payload);
    if (shard === undefined) throw new TypeError(`No shard has payload ${payload}`);
    return shard;
  };
  return { count: bytes.length, bytes, findShard };
}

function tensorBytes(model: OnnxModel, tensor: TensorProto): number {
  const { dims, dataType } = tensor;
  return findPayload(model, tensor)?.length ?? rawByteLength(elementCount(dims), dataType) ?? 0;
}

function tooManyShardsError(maxShardBytes: number, count: number): ServiceError {
  const division = `maxShardBytes ${maxShardBytes} would divide the model into ${count} shards`;
  return new ServiceError("recipe_unsupported", `${division}; at most ${maxShards} are allowed`);
}

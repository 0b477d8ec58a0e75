import type { ModelProto } from "./onnx_pb.js";
import type { CheckpointType, ValueRows } from "../checkpoints/checkpoint-values.ts";

/**
 * A tensor's content that is not in memory: a range of a file, values of a checkpoint, or
 * bytes still to be computed.
 */
export type Payload =
  | {
      readonly kind: "file";
      readonly path: string;
      readonly offset: number;
      readonly length: number;
      /** Field of TensorProto whose encoding the bytes have (`payloadField`). */
      readonly field: number;
    }
  | {
      readonly kind: "checkpoint";
      readonly type: CheckpointType;
      readonly length: number;
      /** One after the other. */
      readonly pieces: readonly ValueRows[];
    }
  | { readonly kind: "computed"; readonly length: number };

/**
 * A model apart from its weights. Tensors whose content is not in `proto` refer to an entry of
 * `payloads` by index (`payloadIndex`); graphs that are cut from or added to the model may share
 * them.
 */
export interface OnnxModel {
  readonly path: string;
  readonly proto: ModelProto;
  readonly payloads: Payload[];
  /** Bytes of the ONNX file and of its external data files. */
  readonly bytes: number;
}

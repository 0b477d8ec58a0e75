import type { ModelProto } from "./onnx_pb.js";

/** A tensor's content that is not in memory: a range of a file, or bytes still to be computed. */
export type Payload =
  | {
      readonly kind: "file";
      readonly path: string;
      readonly offset: number;
      readonly length: number;
      /** Field of TensorProto whose encoding the bytes have (`payloadField`). */
      readonly field: number;
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

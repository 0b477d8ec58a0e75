import type { NodeProto } from "../onnx/onnx_pb.js";

/** A node that a pipeline runs in one of its stages. */
export interface PipelineStep {
  readonly node: NodeProto;
  /** Names that the node or its subgraphs use. */
  readonly inputs: readonly string[];
  /** Those that are not parameters: inputs of the graph and outputs of other steps. */
  readonly runtimeInputs: readonly string[];
  readonly outputs: readonly string[];
  /** Indices of the parameters that the node, its subgraphs and the functions that it calls use. */
  readonly parameters: readonly number[];
}

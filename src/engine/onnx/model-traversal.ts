import type {
  AttributeProto,
  FunctionProto,
  GraphProto,
  ModelProto,
  NodeProto,
  SparseTensorProto,
  TensorProto,
} from "./onnx_pb.js";

/** Graphs in the attributes of a node: branches of If, bodies of Loop and Scan. */
export function nodeSubgraphs(node: NodeProto): GraphProto[] {
  if (node.attribute.length === 0) return [];
  return node.attribute.flatMap((attribute) =>
    attribute.g ? [attribute.g, ...attribute.graphs] : attribute.graphs,
  );
}

/** Every graph in a list of nodes, at any depth. */
export function* nestedGraphs(nodes: readonly NodeProto[]): Generator<GraphProto> {
  for (const node of nodes) {
    for (const graph of nodeSubgraphs(node)) {
      yield graph;
      yield* nestedGraphs(graph.node);
    }
  }
}

/** The graphs of a model that are in no other graph; of functions, those in their nodes. */
export function* outermostGraphs(model: ModelProto): Generator<GraphProto> {
  if (model.graph) yield model.graph;
  for (const { initialization, algorithm } of model.trainingInfo) {
    if (initialization) yield initialization;
    if (algorithm) yield algorithm;
  }
  for (const { node } of model.functions) yield* node.flatMap(nodeSubgraphs);
}

/** Every graph of a model at any depth, outermost first; of functions, those in their nodes. */
export function* modelGraphs(model: ModelProto): Generator<GraphProto> {
  for (const graph of outermostGraphs(model)) {
    yield graph;
    yield* nestedGraphs(graph.node);
  }
}

/** Everything in a model that has nodes: its graphs at any depth, and its functions. */
export function* graphsAndFunctions(model: ModelProto): Generator<GraphProto | FunctionProto> {
  yield* modelGraphs(model);
  yield* model.functions;
}

/** Every tensor of a model: initializers, and attributes of nodes and functions. */
export function* modelTensors(model: ModelProto): Generator<TensorProto> {
  for (const graph of modelGraphs(model)) yield* graphTensors(graph);
  for (const body of model.functions) {
    yield* attributeTensors(body.attributeProto);
    for (const node of body.node) yield* attributeTensors(node.attribute);
  }
}

/** Every tensor in nodes and their subgraphs. */
export function* nodeTensors(nodes: readonly NodeProto[]): Generator<TensorProto> {
  for (const node of nodes) yield* attributeTensors(node.attribute);
  for (const graph of nestedGraphs(nodes)) yield* graphTensors(graph);
}

function* graphTensors(graph: GraphProto): Generator<TensorProto> {
  yield* graph.initializer;
  for (const sparse of graph.sparseInitializer) yield* sparseTensors(sparse);
  for (const node of graph.node) yield* attributeTensors(node.attribute);
}

function* attributeTensors(attributes: readonly AttributeProto[]): Generator<TensorProto> {
  for (const attribute of attributes) {
    if (attribute.t) yield attribute.t;
    yield* attribute.tensors;
    for (const sparse of attribute.sparseTensors) yield* sparseTensors(sparse);
    if (attribute.sparseTensor) yield* sparseTensors(attribute.sparseTensor);
  }
}

function* sparseTensors({ values, indices }: SparseTensorProto): Generator<TensorProto> {
  if (values) yield values;
  if (indices) yield indices;
}

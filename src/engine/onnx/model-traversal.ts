import type {
  AttributeProto,
  FunctionProto,
  GraphProto,
  ModelProto,
  NodeProto,
  TensorProto,
} from "./onnx_pb.js";

/** Graphs held in the attributes of a node: branches of If, bodies of Loop and Scan. */
export function nodeSubgraphs(node: NodeProto): GraphProto[] {
  return node.attribute.flatMap((attribute) =>
    attribute.g ? [attribute.g, ...attribute.graphs] : attribute.graphs,
  );
}

/** Every graph that a list of nodes holds, at any depth. */
export function* nestedGraphs(nodes: readonly NodeProto[]): Generator<GraphProto> {
  for (const node of nodes) {
    for (const graph of nodeSubgraphs(node)) {
      yield graph;
      yield* nestedGraphs(graph.node);
    }
  }
}

/** Every graph of a model, at any depth, outermost first; not the bodies of functions, but the graphs in them. */
export function* modelGraphs(model: ModelProto): Generator<GraphProto> {
  const roots = [
    model.graph,
    ...model.trainingInfo.flatMap((info) => [info.initialization, info.algorithm]),
  ];
  for (const graph of roots) {
    if (graph === undefined) continue;
    yield graph;
    yield* nestedGraphs(graph.node);
  }
  for (const body of model.functions) yield* nestedGraphs(body.node);
}

/** Every list of nodes of a model that users of its values are in: its graphs and functions, at any depth. */
export function* graphsAndFunctions(model: ModelProto): Generator<GraphProto | FunctionProto> {
  yield* modelGraphs(model);
  yield* model.functions;
}

/** Every tensor of a model, wherever it is held. */
export function* modelTensors(model: ModelProto): Generator<TensorProto> {
  for (const graph of modelGraphs(model)) yield* graphTensors(graph);
  for (const body of model.functions) {
    yield* attributeTensors(body.attributeProto);
    for (const node of body.node) yield* attributeTensors(node.attribute);
  }
}

/** Every tensor that nodes hold, in their subgraphs too. */
export function* nodeTensors(nodes: readonly NodeProto[]): Generator<TensorProto> {
  for (const node of nodes) yield* attributeTensors(node.attribute);
  for (const graph of nestedGraphs(nodes)) yield* graphTensors(graph);
}

function* graphTensors(graph: GraphProto): Generator<TensorProto> {
  yield* graph.initializer;
  for (const sparse of graph.sparseInitializer)
    yield* definedTensors([sparse.values, sparse.indices]);
  for (const node of graph.node) yield* attributeTensors(node.attribute);
}

function* attributeTensors(attributes: readonly AttributeProto[]): Generator<TensorProto> {
  for (const attribute of attributes) {
    yield* definedTensors([attribute.t]);
    yield* attribute.tensors;
    for (const sparse of attribute.sparseTensors)
      yield* definedTensors([sparse.values, sparse.indices]);
    if (attribute.sparseTensor) {
      yield* definedTensors([attribute.sparseTensor.values, attribute.sparseTensor.indices]);
    }
  }
}

function* definedTensors(tensors: readonly (TensorProto | undefined)[]): Generator<TensorProto> {
  for (const tensor of tensors) if (tensor !== undefined) yield tensor;
}

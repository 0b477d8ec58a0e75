import { clone, create, toBinary } from "@bufbuild/protobuf";
import { ServiceError } from "../../contract/errors.ts";
import { calledFunctionId, functionId, oneDomain } from "./node-attributes.ts";
import { nestedGraphs, nodeSubgraphs } from "./model-traversal.ts";
import { AttributeProtoSchema, FunctionProtoSchema, NodeProtoSchema } from "./onnx_pb.js";
import type {
  AttributeProto,
  FunctionProto,
  GraphProto,
  ModelProto,
  NodeProto,
} from "./onnx_pb.js";
import { UniqueNames } from "./names.ts";

/** Most nodes after inlining; functions that call others can expand to any number. */
const maxNodes = 200_000;
/** Most bytes that calls may add to the encoded graph; calls copy attributes and names too. */
const maxAddedBytes = 64 * 1024 * 1024;
const maxCallDepth = 32;

interface Inlining {
  readonly model: ModelProto;
  readonly functions: ReadonlyMap<string, FunctionProto>;
  readonly names: UniqueNames;
  /** Sizes of the functions that have been called. */
  readonly sizes: Map<FunctionProto, FunctionSize>;
  /** Versions of the operator sets that the model imports by now, by their domains. */
  readonly imports: Map<string, bigint>;
  nodes: number;
  addedBytes: number;
}

interface FunctionSize {
  readonly bytes: number;
  /** Names that a call prefixes with its own, at most. */
  readonly names: number;
}

/**
 * Replaces each call of a model-local function by the function's nodes, so that weights are next to
 * the operators that use them. A function that imports another version of an operator set than the
 * model, or than a function that went before it, stays.
 * @throws ServiceError model_invalid where functions call each other in a circle, model_unsupported
 * where they expand to too many nodes
 */
export function inlineFunctions(model: ModelProto): void {
  if (model.functions.length === 0 || model.graph === undefined) return;
  const imports = new Map(model.opsetImport.map((entry) => [oneDomain(entry), entry.version]));
  const functions = new Map(model.functions.map((body) => [functionId(body), body]));
  const names = UniqueNames.forModel(model);
  const sizes = new Map<FunctionProto, FunctionSize>();
  const inlining = { model, functions, names, sizes, imports, nodes: 0, addedBytes: 0 };
  inlineGraph(model.graph, inlining, 0);
  const graphs = [model.graph, ...nestedGraphs(model.graph.node)];
  const called = new Set(graphs.flatMap(({ node }) => node.map(calledFunctionId)));
  const isNeeded = called.size > 0 && model.functions.some((body) => called.has(functionId(body)));
  if (!isNeeded) model.functions = [];
}

function hasMatchingOpsets({ opsetImport }: FunctionProto, { imports }: Inlining): boolean {
  return opsetImport.every((entry) => {
    return (imports.get(oneDomain(entry)) ?? entry.version) === entry.version;
  });
}

function inlineGraph(graph: GraphProto, inlining: Inlining, depth: number): void {
  graph.node = graph.node.flatMap((node) => inlineNode(node, inlining, depth));
}

function inlineNode(node: NodeProto, inlining: Inlining, depth: number): NodeProto[] {
  checkLimits(inlining, depth);
  for (const inner of nodeSubgraphs(node)) inlineGraph(inner, inlining, depth);
  const body = inlining.functions.get(calledFunctionId(node));
  if (body === undefined || !hasMatchingOpsets(body, inlining)) return [node];
  chargeCall(node, body, inlining);
  return expandCall(node, body, inlining).flatMap((inner) =>
    inlineNode(inner, inlining, depth + 1),
  );
}

function checkLimits(inlining: Inlining, depth: number): void {
  if (depth > maxCallDepth) {
    throw new ServiceError("model_invalid", "Model-local functions call each other in a circle");
  }
  inlining.nodes += 1;
  if (inlining.nodes > maxNodes) {
    const message = `The model's functions stand for more than ${maxNodes} nodes`;
    throw new ServiceError("model_unsupported", message);
  }
}

/** Counts what a call copies. The first call of a function also imports its operator sets. */
function chargeCall(call: NodeProto, body: FunctionProto, inlining: Inlining): void {
  let size = inlining.sizes.get(body);
  if (size === undefined) {
    size = measureFunction(body);
    inlining.sizes.set(body, size);
    importOpsets(inlining, body);
  }
  inlining.addedBytes += size.bytes + size.names * callPrefix(call).length;
  if (inlining.addedBytes > maxAddedBytes) {
    const message = `The model's functions stand for more than ${maxAddedBytes} bytes of nodes`;
    throw new ServiceError("model_unsupported", message);
  }
}

function measureFunction(body: FunctionProto): FunctionSize {
  const bytes = toBinary(FunctionProtoSchema, body).length;
  const nodes = [...body.node, ...[...nestedGraphs(body.node)].flatMap(({ node }) => node)];
  const names = nodes.reduce((sum, { input, output }) => sum + 1 + input.length + output.length, 0);
  return { bytes, names };
}

/** Imports the operator sets that only the function imports. */
function importOpsets({ model, imports }: Inlining, body: FunctionProto): void {
  for (const entry of body.opsetImport) {
    const domain = oneDomain(entry);
    if (!imports.has(domain)) model.opsetImport.push(entry);
    imports.set(domain, entry.version);
  }
}

function callPrefix({ name, opType }: NodeProto): string {
  return name === "" ? opType : name;
}

/** The nodes of a function with the names and attributes of a call. */
function expandCall(call: NodeProto, body: FunctionProto, { names }: Inlining): NodeProto[] {
  const prefix = callPrefix(call);
  const renamed = new Map<string, string>([["", ""]]);
  for (const [index, input] of body.input.entries()) renamed.set(input, call.input[index] ?? "");
  const expansion = { renamed, prefix, names, attributes: callAttributes(call, body) };
  const forwarding = connectOutputs(call, body, expansion);
  const nodes = body.node.map((node) => copyNode(clone(NodeProtoSchema, node), expansion));
  return [...nodes, ...forwarding];
}

/**
 * Gives the function's outputs the names that they have in the call.
 * @returns nodes for outputs that are inputs of the function, or are output twice
 */
function connectOutputs(
  call: NodeProto,
  body: FunctionProto,
  { renamed, prefix, names }: CallExpansion,
): NodeProto[] {
  const forwarding: NodeProto[] = [];
  for (const [index, output] of body.output.entries()) {
    const given = call.output[index] ?? "";
    if (given === "") continue;
    const source = renamed.get(output);
    if (source === undefined) {
      renamed.set(output, given);
      continue;
    }
    const name = names.allocate(`${prefix}_passed`);
    forwarding.push(
      create(NodeProtoSchema, { opType: "Identity", name, input: [source], output: [given] }),
    );
  }
  return forwarding;
}

interface CallExpansion {
  readonly renamed: Map<string, string>;
  readonly prefix: string;
  readonly names: UniqueNames;
  readonly attributes: ReadonlyMap<string, AttributeProto>;
}

function callAttributes(call: NodeProto, body: FunctionProto): Map<string, AttributeProto> {
  return new Map(
    [...body.attributeProto, ...call.attribute].map((attribute) => [attribute.name, attribute]),
  );
}

/** Gives a copied node and its subgraphs the names and attributes of the call. */
function copyNode(node: NodeProto, call: CallExpansion): NodeProto {
  const rename = (name: string) => renameValue(name, call);
  node.name = call.names.allocate(`${call.prefix}/${node.name === "" ? node.opType : node.name}`);
  node.input = node.input.map(rename);
  node.output = node.output.map(rename);
  node.attribute = node.attribute.flatMap((attribute) => resolveAttribute(attribute, call));
  for (const graph of nodeSubgraphs(node)) {
    for (const list of [graph.input, graph.initializer, graph.output, graph.valueInfo]) {
      for (const named of list) named.name = rename(named.name);
    }
    for (const { values } of graph.sparseInitializer) {
      if (values !== undefined) values.name = rename(values.name);
    }
    for (const inner of graph.node) copyNode(inner, call);
  }
  return node;
}

function renameValue(name: string, { renamed, names, prefix }: CallExpansion): string {
  const known = renamed.get(name);
  if (known !== undefined) return known;
  const allocated = names.allocate(`${prefix}/${name}`);
  renamed.set(name, allocated);
  return allocated;
}

/** Replaces a reference to an attribute of the function by the call's value, if it has one. */
function resolveAttribute(attribute: AttributeProto, call: CallExpansion): AttributeProto[] {
  if (attribute.refAttrName === "") return [attribute];
  const given = call.attributes.get(attribute.refAttrName);
  if (given === undefined) return [];
  return [Object.assign(create(AttributeProtoSchema), given, { name: attribute.name })];
}

import { ServiceError } from "../../contract/errors.ts";
import { elementBits, elementTypeName, rawByteLength } from "./element-type.ts";
import { quoteName } from "./external-data.ts";
import { graphsAndFunctions, modelGraphs, nodeSubgraphs, modelTensors } from "./model-traversal.ts";
import { TensorProto_DataType } from "./onnx_pb.js";
import type { FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto } from "./onnx_pb.js";
import { elementCount, isFixedWidth, findPayload, formatShape } from "./payload.ts";
import type { OnnxModel } from "./payload.ts";

/** Operator sets that can be read: from the first whose changes the upgrade table knows to the last that is published. */
export const opsetRange = { first: 7, last: 28 } as const;
/** Newest version of the ONNX format that is published. */
const lastIrVersion = 14;

/**
 * Checks what every later step relies on.
 * @throws ServiceError model_invalid, model_opset_unsupported
 */
export function checkModel(model: OnnxModel): void {
  checkVersions(model.proto);
  for (const tensor of modelTensors(model.proto)) checkTensor(model, tensor);
  for (const { node } of graphsAndFunctions(model.proto)) node.forEach(checkOperator);
  for (const graph of modelGraphs(model.proto)) checkGraph(graph);
}

/** Version of the standard operator set that a model or function imports. */
export function standardOpset(imports: ModelProto["opsetImport"]): number | undefined {
  const entry = imports.find(({ domain }) => domain === "" || domain === "ai.onnx");
  return entry === undefined ? undefined : Number(entry.version);
}

function labelFunction({
  opsetImport,
  name,
}: FunctionProto): Pick<FunctionProto, "opsetImport" | "name"> {
  return { opsetImport, name: `Function ${quoteName(name)}` };
}

function checkVersions(proto: ModelProto): void {
  if (proto.graph === undefined) throw new ServiceError("model_invalid", "The file holds no graph");
  if (proto.irVersion > lastIrVersion) {
    throw new ServiceError(
      "model_opset_unsupported",
      `The model has IR version ${proto.irVersion}, and the newest that is known is ${lastIrVersion}`,
    );
  }
  for (const { opsetImport, name } of [
    { opsetImport: proto.opsetImport, name: "The model" },
    ...proto.functions.map(labelFunction),
  ]) {
    const version = standardOpset(opsetImport);
    if (version === undefined) continue;
    if (version < opsetRange.first || version > opsetRange.last) {
      throw new ServiceError(
        "model_opset_unsupported",
        `${name} has opset ${version}, and ${opsetRange.first} to ${opsetRange.last} are supported; convert it with Python's onnx.version_converter.convert_version(model, 17)`,
      );
    }
  }
  if (proto.opsetImport.length === 0)
    throw new ServiceError("model_invalid", "The model imports no operator set");
}

/** @throws ServiceError model_invalid */
export function checkShape({ name, dims }: TensorProto): void {
  try {
    elementCount(dims);
  } catch (error) {
    throw new ServiceError(
      "model_invalid",
      `Tensor ${quoteName(name)} has no valid shape: ${formatShape(dims)}`,
      {
        cause: error,
      },
    );
  }
}

function checkTensor(model: OnnxModel, tensor: TensorProto): void {
  const elements = elementCount(tensor.dims);
  const actual = contentByteLength(model, tensor);
  const expected = rawByteLength(elements, tensor.dataType);
  if (actual === undefined || expected === undefined) {
    checkStrings(tensor, elements);
    return;
  }
  if (actual !== expected) {
    throw new ServiceError(
      "model_invalid",
      `Tensor ${quoteName(tensor.name)} holds ${actual} bytes, and ${elementTypeName(tensor.dataType)}${formatShape(tensor.dims)} needs ${expected}`,
    );
  }
}

function checkStrings(tensor: TensorProto, elements: number): void {
  if (tensor.dataType === TensorProto_DataType.STRING && tensor.stringData.length !== elements) {
    throw new ServiceError(
      "model_invalid",
      `Tensor ${quoteName(tensor.name)} holds ${tensor.stringData.length} strings, and its shape needs ${elements}`,
    );
  }
}

/** Raw bytes that the content of a tensor stands for; undefined where only decoding it would tell. */
function contentByteLength(model: OnnxModel, tensor: TensorProto): number | undefined {
  const payload = findPayload(model, tensor);
  if (payload?.kind === "file") return isFixedWidth(payload.field) ? payload.length : undefined;
  if (tensor.rawData.length > 0) return tensor.rawData.length;
  if (tensor.floatData.length > 0) return tensor.floatData.length * 4;
  if (tensor.doubleData.length > 0) return tensor.doubleData.length * 8;
  if (tensor.int64Data.length > 0) return tensor.int64Data.length * 8;
  const bits = elementBits(tensor.dataType);
  return bits === undefined
    ? undefined
    : (tensor.int32Data.length + tensor.uint64Data.length) * Math.max(1, bits / 8);
}

/** Names of operators go into reports, logs and messages, so that they have to be names. */
function checkOperator({ opType, domain }: NodeProto): void {
  if (!/^[!-~]{1,256}$/.test(opType) || !/^[!-~]{0,256}$/.test(domain)) {
    throw new ServiceError(
      "model_invalid",
      `A node has the operator ${quoteName(`${domain}:${opType}`)}`,
    );
  }
}

function checkGraph(graph: GraphProto): void {
  const names = new Set<string>();
  for (const { name } of graph.initializer) {
    if (names.has(name))
      throw new ServiceError("model_invalid", `Initializer ${quoteName(name)} is defined twice`);
    names.add(name);
  }
  sortTopologically(graph.node);
}

/**
 * The nodes in an order in which every value is made before it is used, the given order kept where it is one.
 * @throws ServiceError model_invalid where nodes need each other or two make the same value
 */
export function sortTopologically(nodes: readonly NodeProto[]): NodeProto[] {
  const makers = new Map<string, number>();
  for (const [index, node] of nodes.entries()) {
    for (const output of node.output) {
      if (output === "") continue;
      if (makers.has(output))
        throw new ServiceError("model_invalid", `Value ${quoteName(output)} is made twice`);
      makers.set(output, index);
    }
  }
  const needs = nodes.map((node) => [...usedNames(node)].flatMap((name) => makers.get(name) ?? []));
  const order: NodeProto[] = [];
  const states = new Uint8Array(nodes.length);
  for (const root of nodes.keys()) visitDepthFirst({ nodes, needs, states, order }, root);
  return order;
}

interface Sorting {
  readonly nodes: readonly NodeProto[];
  readonly needs: readonly (readonly number[])[];
  /** 0: not seen, 1: waits for the nodes it needs, 2: in order */
  readonly states: Uint8Array;
  readonly order: NodeProto[];
}

/** Depth first with a stack of its own, since graphs can be as deep as they are long. */
function visitDepthFirst({ nodes, needs, states, order }: Sorting, root: number): void {
  const stack = [root];
  for (let index = stack.at(-1); index !== undefined; index = stack.at(-1)) {
    const node = nodes[index];
    const missing = needs[index]?.find((need) => states[need] !== 2);
    if (node === undefined || states[index] === 2) {
      stack.pop();
    } else if (missing === undefined) {
      states[index] = 2;
      order.push(node);
      stack.pop();
    } else {
      if (states[missing] === 1) {
        throw new ServiceError(
          "model_invalid",
          `The graph has a cycle through node ${quoteName(node.name)}`,
        );
      }
      states[index] = 1;
      stack.push(missing);
    }
  }
}

/** Names that a node takes from around it: its inputs, and what its subgraphs use and do not make themselves. */
export function usedNames(node: NodeProto): Set<string> {
  const names = new Set(node.input.filter((name) => name !== ""));
  for (const graph of nodeSubgraphs(node)) {
    for (const name of capturedNames(graph)) names.add(name);
  }
  return names;
}

/** Names that a graph uses and does not make itself. */
export function capturedNames(graph: GraphProto): Set<string> {
  const used = new Set(graph.output.map((output) => output.name));
  const made = new Set([
    ...graph.input.map((input) => input.name),
    ...graph.initializer.map(({ name }) => name),
  ]);
  for (const sparse of graph.sparseInitializer) if (sparse.values) made.add(sparse.values.name);
  for (const node of graph.node) {
    for (const name of usedNames(node)) used.add(name);
    for (const name of node.output) made.add(name);
  }
  return new Set([...used].filter((name) => !made.has(name)));
}

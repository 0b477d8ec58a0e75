import { createHash, type Hash } from "node:crypto";
import { sketchWeight } from "./sketch-weight.ts";
import { elementTypeName } from "../onnx/element-type.ts";
import { hashSource } from "../onnx/hash-source.ts";
import { findAttribute, isStandardDomain } from "../onnx/node-attributes.ts";
import type {
  AttributeProto,
  GraphProto,
  NodeProto,
  TensorProto,
  TypeProto,
  ValueInfoProto,
} from "../onnx/onnx_pb.js";
import type { OnnxModel } from "../onnx/onnx-model.ts";
import { openOriginal } from "../language/open-original.ts";
import { tensorByteLength, tensorSource } from "../onnx/read-tensor.ts";
import type {
  DescribedNode,
  DescribedWeight,
  ModelDescription,
} from "../../contract/models/model-description.ts";
import { truncate } from "../../contract/text/truncate.ts";

const maxTextLength = 2_000;
const digestLength = 32;
/** A smaller weight is known only by its digest. */
const minSketchedElements = 64;

/**
 * What tells a model from others: its graph, and for each weight a digest and a sketch, which take
 * one pass over the weights and little memory.
 * @throws ServiceError those of openOriginal
 */
export async function describeModel(
  path: string,
  maxBytes: number,
  signal: AbortSignal,
): Promise<ModelDescription> {
  const model = await openOriginal(path, maxBytes);
  const graph = graphOf(model);
  const constants = graph.node.flatMap(constantOf);
  const weights: DescribedWeight[] = [];
  for (const [name, tensor] of [...initializersOf(graph), ...constants]) {
    weights.push(await describeWeight(model, { name, tensor, signal }));
  }
  return { ...(await describeStructure(model, signal)), weights };
}

/** What describeModel gives of an open model but its weights, which are not read. */
export async function describeStructure(
  model: OnnxModel,
  signal: AbortSignal,
): Promise<ModelDescription> {
  const graph = graphOf(model);
  const names = new Set(graph.initializer.map(({ name }) => name));
  const nodes: DescribedNode[] = [];
  for (const node of graph.node) {
    if (constantOf(node).length === 0) nodes.push(await describeNode(model, node, signal));
  }
  return {
    opsets: Object.fromEntries(
      model.proto.opsetImport.map(({ domain, version }) => [
        isStandardDomain({ domain }) ? "ai.onnx" : limit(domain),
        Number(version),
      ]),
    ),
    inputs: graph.input.filter(({ name }) => !names.has(name)).map(describeValue),
    outputs: graph.output.map(describeValue),
    nodes,
    weights: [],
  };
}

function graphOf({ proto: { graph } }: OnnxModel): GraphProto {
  if (!graph) throw new TypeError("A model without a graph was opened");
  return graph;
}

type NamedTensor = [name: string, tensor: TensorProto];

function initializersOf(graph: GraphProto): NamedTensor[] {
  return graph.initializer.map((tensor) => [tensor.name, tensor]);
}

/** A constant is a weight, whichever way a model has it. */
function constantOf(node: NodeProto): NamedTensor[] {
  const tensor = node.opType === "Constant" ? findAttribute(node, "value")?.t : undefined;
  return tensor === undefined ? [] : [[node.output[0] ?? "", tensor]];
}

async function describeWeight(
  model: OnnxModel,
  { name, tensor, signal }: { name: string; tensor: TensorProto; signal: AbortSignal },
): Promise<DescribedWeight> {
  const shape = tensor.dims.map(Number);
  const described = { name: limit(name), type: elementTypeName(tensor.dataType), shape };
  const bytes = described.type === "string" ? 0 : tensorByteLength(tensor);
  const digest = await digestTensor(model, tensor, signal);
  const isSmall = shape.reduce((product, size) => product * size, 1) < minSketchedElements;
  const sketched = isSmall ? null : await sketchWeight(tensor, tensorSource(model, tensor), signal);
  return {
    ...described,
    bytes,
    digest,
    norm: sketched?.norm ?? null,
    sketch: sketched?.sketch ?? null,
  };
}

async function digestTensor(
  model: OnnxModel,
  tensor: TensorProto,
  signal: AbortSignal,
): Promise<string> {
  if (elementTypeName(tensor.dataType) === "string") {
    const hash = createHash("sha256");
    for (const text of tensor.stringData) hash.update(text).update("\0");
    return shorten(hash);
  }
  return (await hashSource(tensorSource(model, tensor), signal)).slice(0, digestLength);
}

async function describeNode(
  model: OnnxModel,
  node: NodeProto,
  signal: AbortSignal,
): Promise<DescribedNode> {
  return {
    name: limit(node.name),
    op: limit(operatorName(node)),
    attributes: await digestAttributes(model, node.attribute, signal),
    inputs: node.input.map(limit),
    outputs: node.output.map(limit),
  };
}

function operatorName({ domain, opType }: NodeProto): string {
  return isStandardDomain({ domain }) ? opType : `${domain}.${opType}`;
}

async function digestAttributes(
  model: OnnxModel,
  attributes: readonly AttributeProto[],
  signal: AbortSignal,
): Promise<string> {
  if (attributes.length === 0) return "";
  const hash = createHash("sha256");
  for (const attribute of attributes.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
    hash.update(await attributeText(model, attribute, signal));
  }
  return shorten(hash);
}

/** The content of an attribute, with digests in place of tensors, which may be anywhere. */
async function attributeText(
  model: OnnxModel,
  { name, type, f, i, s, floats, ints, strings, ...nested }: AttributeProto,
  signal: AbortSignal,
): Promise<string> {
  const digests: string[] = [];
  for (const tensor of [...(nested.t ? [nested.t] : []), ...nested.tensors]) {
    digests.push(tensor.dims.join(), await digestTensor(model, tensor, signal));
  }
  for (const graph of [...(nested.g ? [nested.g] : []), ...nested.graphs]) {
    for (const [weight, tensor] of initializersOf(graph)) {
      digests.push(weight, await digestTensor(model, tensor, signal));
    }
    for (const node of graph.node) {
      digests.push(JSON.stringify(await describeNode(model, node, signal)));
    }
  }
  const texts = [s, ...strings].map((bytes) => Buffer.from(bytes).toString("base64"));
  return JSON.stringify([name, type, f, String(i), floats, ints.map(String), texts, digests]);
}

function describeValue({ name, type }: ValueInfoProto) {
  return { name: limit(name), type: limit(describeType(type)) };
}

function describeType(type: TypeProto | undefined): string {
  if (type?.value.case !== "tensorType") return type?.value.case ?? "unknown";
  const { elemType, shape } = type.value.value;
  const dims = shape?.dim.map(({ value }) => String(value.value ?? "?")) ?? ["…"];
  return `${elementTypeName(elemType)}[${dims.join(",")}]`;
}

function shorten(hash: Hash): string {
  return hash.digest("hex").slice(0, digestLength);
}

function limit(text: string): string {
  return truncate(text, maxTextLength);
}

import { create } from "@bufbuild/protobuf";
import { intAttribute } from "../../onnx/node-attributes.ts";
import { subgraphsOf } from "../../onnx/graph-tensors.ts";
import { TensorProto_DataType as DataType, TensorProtoSchema } from "../../onnx/onnx_pb.js";
import type { GraphProto, NodeProto } from "../../onnx/onnx_pb.js";
import type { NewNode, Rewrite } from "../rewrite.ts";
import { halfRange } from "./choose-half.ts";
import type { HalfChoice } from "./choose-half.ts";
import { halfOperators, halfPositions } from "./half-operators.ts";

/** Names of the two versions of each value of a body; those of the bodies around it are seen through `outer`. */
interface Versions {
  readonly body: GraphProto;
  readonly outer: Versions | undefined;
  readonly half: Map<string, string>;
  readonly single: Map<string, string>;
}

export interface HalfRewriting {
  readonly rewrite: Rewrite;
  readonly choice: HalfChoice;
  /** Names of the half-precision versions of weights, by the node and input that take them. */
  readonly halfWeights: ReadonlyMap<NodeProto, ReadonlyMap<number, string>>;
}

/** Turns the chosen nodes of a graph to half precision, with a Cast wherever the precision changes. What goes into and out of the graph stays as it is. */
export function rewriteHalf(rewriting: HalfRewriting, body: GraphProto, outer?: Versions): void {
  const { rewrite, choice } = rewriting;
  const own = choice.values.get(body) ?? new Set();
  const versions: Versions = { body, outer, half: new Map(), single: new Map() };
  const outputs = new Set(body.output.map(({ name }) => name));
  for (const name of own) {
    versions.half.set(name, outputs.has(name) ? rewrite.names.take(`${name}_half`) : name);
    if (outputs.has(name)) versions.single.set(name, name);
  }
  for (const node of body.node) {
    const steps: NewNode[] = [];
    const isHalf = choice.nodes.has(node);
    const input = isHalf
      ? halfInputs(rewriting, { node, versions }, steps)
      : singleInputs(rewriting, { node, versions }, steps);
    const output = isHalf
      ? node.output.map((name) => (own.has(name) ? (versions.half.get(name) ?? name) : name))
      : node.output;
    const casts = output.flatMap((name, index) => {
      const given = node.output[index] ?? "";
      return name === given ? [] : [castNode(name, given, DataType.FLOAT)];
    });
    if (isHalf || steps.length > 0) rewrite.surround(node, { before: steps, changes: { input, output }, after: casts });
    for (const inner of subgraphsOf(node)) rewriteHalf(rewriting, inner, versions);
  }
  retype(body, own);
}

/** Corrects what the graph says about values that are in half precision now. */
function retype(body: GraphProto, halfValues: ReadonlySet<string>): void {
  const outputs = new Set(body.output.map(({ name }) => name));
  for (const { name, type } of body.valueInfo) {
    if (type?.value.case !== "tensorType" || !halfValues.has(name) || outputs.has(name)) continue;
    type.value.value.elemType = DataType.FLOAT16;
  }
}

interface NodeVersions {
  readonly node: NodeProto;
  readonly versions: Versions;
}

function halfInputs(rewriting: HalfRewriting, { node, versions }: NodeVersions, steps: NewNode[]): string[] {
  const operator = halfOperators.get(node.opType);
  const positions = new Set(halfPositions(operator?.inputs ?? [], node.input));
  const weights = rewriting.halfWeights.get(node);
  return node.input.map((name, index) => {
    if (!positions.has(index)) return singleVersion(rewriting, { name, versions }, steps);
    return weights?.get(index) ?? halfVersion(rewriting, { name, versions }, steps);
  });
}

/** Inputs of a node that stays in single precision. Some operators take any type. */
function singleInputs(rewriting: HalfRewriting, { node, versions }: NodeVersions, steps: NewNode[]): string[] {
  const operator = node.domain === "" ? halfOperators.get(node.opType) : undefined;
  const takesAny = operator?.outputs.length === 0 && operator.inputs !== "all";
  return node.input.map((name) =>
    takesAny ? (findVersion(versions, "half", name) ?? name) : singleVersion(rewriting, { name, versions }, steps),
  );
}

interface NamedValue {
  readonly name: string;
  readonly versions: Versions;
}

function halfVersion({ rewrite, choice }: HalfRewriting, { name, versions }: NamedValue, steps: NewNode[]): string {
  const known = findVersion(versions, "half", name);
  if (known !== undefined) return known;
  const half = rewrite.names.take(`${name}_half`);
  let source = name;
  if (choice.wide.has(name)) {
    source = rewrite.names.take(`${name}_clipped`);
    const [low, high] = [-halfRange.largest, halfRange.largest].map((limit) =>
      scalarName(rewrite, versions.body, limit),
    );
    steps.push({ opType: "Clip", input: [name, low ?? "", high ?? ""], output: [source] });
  }
  steps.push(castNode(source, half, DataType.FLOAT16));
  versions.half.set(name, half);
  return half;
}

function singleVersion({ rewrite, choice }: HalfRewriting, { name, versions }: NamedValue, steps: NewNode[]): string {
  const half = findVersion(versions, "half", name);
  if (half === undefined || !isMadeHalf(choice, name, versions)) return name;
  const known = findVersion(versions, "single", name);
  if (known !== undefined) return known;
  const single = rewrite.names.take(`${name}_single`);
  steps.push(castNode(half, single, DataType.FLOAT));
  versions.single.set(name, single);
  return single;
}

/** Whether the value itself is in half precision, and not only a version of it. */
function isMadeHalf(choice: HalfChoice, name: string, versions: Versions): boolean {
  for (let at: Versions | undefined = versions; at !== undefined; at = at.outer) {
    if (choice.values.get(at.body)?.has(name) === true) return true;
  }
  return false;
}

function findVersion(versions: Versions, kind: "half" | "single", name: string): string | undefined {
  for (let at: Versions | undefined = versions; at !== undefined; at = at.outer) {
    const found = at[kind].get(name);
    if (found !== undefined) return found;
  }
  return undefined;
}

function castNode(from: string, to: string, type: number): NewNode {
  return { opType: "Cast", input: [from], output: [to], attribute: [intAttribute("to", type)] };
}

function scalarName(rewrite: Rewrite, body: GraphProto, value: number): string {
  const name = rewrite.names.take("half_limit");
  const rawData = new Uint8Array(Float32Array.of(value).buffer);
  rewrite.addConstant(body, create(TensorProtoSchema, { name, dataType: DataType.FLOAT, rawData }));
  return name;
}

import { create } from "@bufbuild/protobuf";
import { at } from "../../onnx/at.ts";
import { findAttribute, intAttribute } from "../../onnx/node-attributes.ts";
import { nodeSubgraphs } from "../../onnx/model-traversal.ts";
import { TensorProto_DataType as DataType, TensorProtoSchema } from "../../onnx/onnx_pb.js";
import type { GraphProto, NodeProto } from "../../onnx/onnx_pb.js";
import type { NodeDescription, GraphRewrite } from "../graph-rewrite.ts";
import { operatorName } from "../channel-axis.ts";
import { halfRange, isHalfValue } from "./choose-half-nodes.ts";
import type { HalfChoice } from "./choose-half-nodes.ts";
import { halfOperators, halfPositions } from "./half-operators.ts";

/** Names of the two versions of each value of a body; `outer` has those of the body around it. */
interface ValueVersions {
  readonly body: GraphProto;
  readonly outer: ValueVersions | undefined;
  readonly half: Map<string, string>;
  readonly single: Map<string, string>;
}

interface HalfRewriteContext {
  readonly rewrite: GraphRewrite;
  readonly choice: HalfChoice;
  /** Names of the half-precision versions of weights, by the node and input that take them. */
  readonly halfWeights: ReadonlyMap<NodeProto, ReadonlyMap<number, string>>;
}

/**
 * Converts the chosen nodes of a graph to half precision, with a Cast wherever the precision
 * changes. Inputs and outputs of the graph keep their types.
 */
export function rewriteToHalf(
  rewriting: HalfRewriteContext,
  body: GraphProto,
  outer?: ValueVersions,
): void {
  const { rewrite, choice } = rewriting;
  const own = choice.values.get(body) ?? new Set();
  const versions: ValueVersions = { body, outer, half: new Map(), single: new Map() };
  const outputs = new Set(body.output.map(({ name }) => name));
  for (const name of own) {
    versions.half.set(name, outputs.has(name) ? rewrite.names.allocate(`${name}_half`) : name);
    if (outputs.has(name)) versions.single.set(name, name);
  }
  for (const node of body.node) {
    const steps: NodeDescription[] = [];
    const isHalf = choice.nodes.has(node);
    const input = isHalf
      ? castInputsToHalf(rewriting, { node, versions }, steps)
      : castInputsToSingle(rewriting, { node, versions }, steps);
    const output = isHalf
      ? node.output.map((name) => (own.has(name) ? (versions.half.get(name) ?? name) : name))
      : node.output;
    const casts = output.flatMap((name, index) => {
      const given = at(node.output, index);
      return name === given ? [] : [castNode(name, given, DataType.FLOAT)];
    });
    // A cast may be there already.
    const remains = castsHalfToHalf(rewriting, { node, versions });
    if (isHalf || remains || input.some((name, index) => name !== node.input[index])) {
      // ONNX Runtime makes an invalid graph of a cast to the type that a value has.
      const changed = remains ? { opType: "Identity", attribute: [] } : {};
      const changes = { input, output, ...changed };
      rewrite.replaceWithCopy(node, { before: steps, changes, after: casts });
    }
    for (const inner of nodeSubgraphs(node)) rewriteToHalf(rewriting, inner, versions);
  }
  updateValueTypes(body, own);
}

function castsHalfToHalf(
  { choice }: HalfRewriteContext,
  { node, versions }: NodeVersions,
): boolean {
  if (operatorName(node) !== "Cast") return false;
  const isToHalf = Number(findAttribute(node, "to")?.i) === DataType.FLOAT16;
  return isToHalf && isHalfValue(at(node.input, 0), versions, choice);
}

/** Updates the declared types of values that are in half precision now. */
function updateValueTypes(body: GraphProto, halfValues: ReadonlySet<string>): void {
  const outputs = new Set(body.output.map(({ name }) => name));
  for (const { name, type } of body.valueInfo) {
    if (type?.value.case !== "tensorType" || !halfValues.has(name) || outputs.has(name)) continue;
    type.value.value.elemType = DataType.FLOAT16;
  }
}

interface NodeVersions {
  readonly node: NodeProto;
  readonly versions: ValueVersions;
}

function castInputsToHalf(
  rewriting: HalfRewriteContext,
  { node, versions }: NodeVersions,
  steps: NodeDescription[],
): string[] {
  const operator = halfOperators.get(node.opType);
  const positions = new Set(halfPositions(operator?.inputs ?? [], node.input));
  const weights = rewriting.halfWeights.get(node);
  return node.input.map((name, index) => {
    if (!positions.has(index)) return castToSingle(rewriting, { name, versions }, steps);
    return weights?.get(index) ?? castToHalf(rewriting, { name, versions }, steps);
  });
}

/** Inputs of a node that stays in single precision. Some operators take any type. */
function castInputsToSingle(
  rewriting: HalfRewriteContext,
  { node, versions }: NodeVersions,
  steps: NodeDescription[],
): string[] {
  const operator = halfOperators.get(operatorName(node));
  const takesAny = operator?.outputs.length === 0 && operator.inputs !== "all";
  return node.input.map((name) =>
    takesAny && isHalfValue(name, versions, rewriting.choice)
      ? (findVersion(versions, "half", name) ?? name)
      : castToSingle(rewriting, { name, versions }, steps),
  );
}

interface NamedValue {
  readonly name: string;
  readonly versions: ValueVersions;
}

function castToHalf(
  { rewrite, choice }: HalfRewriteContext,
  { name, versions }: NamedValue,
  steps: NodeDescription[],
): string {
  const known = findVersion(versions, "half", name);
  if (known !== undefined) return known;
  const half = rewrite.names.allocate(`${name}_half`);
  let source = name;
  if (choice.wide.has(name)) {
    source = rewrite.names.allocate(`${name}_clipped`);
    const bounds = [-halfRange.largest, halfRange.largest].map((limit) =>
      addScalarConstant(rewrite, versions.body, limit),
    );
    steps.push({ opType: "Clip", input: [name, ...bounds], output: [source] });
  }
  steps.push(castNode(source, half, DataType.FLOAT16));
  versions.half.set(name, half);
  return half;
}

function castToSingle(
  { rewrite, choice }: HalfRewriteContext,
  { name, versions }: NamedValue,
  steps: NodeDescription[],
): string {
  const half = findVersion(versions, "half", name);
  if (half === undefined || !isHalfValue(name, versions, choice)) return name;
  const known = findVersion(versions, "single", name);
  if (known !== undefined) return known;
  const single = rewrite.names.allocate(`${name}_single`);
  steps.push(castNode(half, single, DataType.FLOAT));
  versions.single.set(name, single);
  return single;
}

function findVersion(
  versions: ValueVersions,
  kind: "half" | "single",
  name: string,
): string | undefined {
  for (let at: ValueVersions | undefined = versions; at !== undefined; at = at.outer) {
    const found = at[kind].get(name);
    if (found !== undefined) return found;
  }
  return undefined;
}

function castNode(from: string, to: string, type: number): NodeDescription {
  return { opType: "Cast", input: [from], output: [to], attribute: [intAttribute("to", type)] };
}

function addScalarConstant(rewrite: GraphRewrite, body: GraphProto, value: number): string {
  const name = rewrite.names.allocate("half_limit");
  const rawData = new Uint8Array(Float32Array.of(value).buffer);
  rewrite.addConstantTensor(
    body,
    create(TensorProtoSchema, { name, dataType: DataType.FLOAT, rawData }),
  );
  return name;
}

import { create } from "@bufbuild/protobuf";
import { ServiceError } from "../../contract/errors.ts";
import { quoteName } from "../../contract/text/quote-name.ts";
import { nodeSubgraphs } from "../onnx/model-traversal.ts";
import { ModelFacts } from "./model-facts.ts";
import { OperatorSetIdProtoSchema } from "../onnx/onnx_pb.js";
import type { FunctionProto, GraphProto, ModelProto, NodeProto } from "../onnx/onnx_pb.js";
import { opsetChanges } from "./opset-changes.ts";
import { opsetVersions } from "./opset-versions.ts";
import { RewriteScope } from "./rewrite-scope.ts";
import type { ModelRewrite } from "./rewrite-scope.ts";
import { isStandardDomain, standardOpset } from "../onnx/node-attributes.ts";
import { UniqueNames } from "../onnx/names.ts";

/** The oldest opset whose operators can be raised, and the newest they can be raised to. */
const raisableOpsets = { first: 7, last: 21 } as const;

/**
 * Raises the default domain's opset of a model (main graph, subgraphs and model-local functions) to
 * `targetOpset` in place, and keeps the meaning of every operator. Models of a newer opset do not
 * change. Raises the IR version where the new opset needs a later one. Nodes must not use the newer
 * opset yet.
 * @throws ServiceError `model_opset_unsupported` with the operator that has no known change; the
 * model is unchanged then
 */
export function raiseOpset(model: ModelProto, targetOpset: number): void {
  if (targetOpset > raisableOpsets.last) {
    throw new RangeError(`Opset ${targetOpset} is above ${raisableOpsets.last}, the newest known`);
  }
  const from = importedOpset(model);
  if (from >= targetOpset) return;
  const raising: Raising = {
    rewrite: { facts: new ModelFacts(model), names: UniqueNames.forModel(model), targetOpset },
    localFunctions: new Set(model.functions.filter(isStandardDomain).map(({ name }) => name)),
    results: [],
  };
  if (model.graph !== undefined) raiseBody(model.graph, from, raising);
  for (const body of model.functions) {
    if (importedOpset(body) < targetOpset) raiseBody(body, importedOpset(body), raising);
  }
  raising.results.forEach(applyRaised);
  raiseImports(model, targetOpset);
}

function applyRaised({ body, nodes, scope }: RaisedBody): void {
  body.node = [...scope.constantNodes, ...nodes];
  if (body.$typeName === "onnx.GraphProto") {
    body.initializer = [...body.initializer, ...scope.initializers];
  }
}

function raiseImports(model: ModelProto, targetOpset: number): void {
  if (!model.opsetImport.some(isStandardDomain)) {
    model.opsetImport.push(create(OperatorSetIdProtoSchema, { domain: "" }));
  }
  for (const { opsetImport } of [model, ...model.functions]) {
    for (const entry of opsetImport.filter(isStandardDomain)) {
      if (entry.version < targetOpset) entry.version = BigInt(targetOpset);
    }
  }
  const irVersion = minimumIrVersion(targetOpset);
  if (model.irVersion < irVersion) model.irVersion = BigInt(irVersion);
}

/** A graph or function and what it consists of at the new opset. */
interface RaisedBody {
  readonly body: GraphProto | FunctionProto;
  readonly nodes: NodeProto[];
  readonly scope: RewriteScope;
}

interface Raising {
  readonly rewrite: ModelRewrite;
  /** Names of the model's functions in the standard domain. */
  readonly localFunctions: ReadonlySet<string>;
  readonly results: RaisedBody[];
}

function importedOpset({ opsetImport }: ModelProto | FunctionProto): number {
  return standardOpset(opsetImport) ?? 1;
}

function raiseBody(
  body: GraphProto | FunctionProto,
  from: number,
  raising: Raising,
  outer?: RewriteScope,
): void {
  const scope = new RewriteScope(raising.rewrite, body, outer);
  const nodes = body.node.flatMap((node) => {
    for (const graph of nodeSubgraphs(node)) raiseBody(graph, from, raising, scope);
    const isKnown = !isStandardDomain(node) || raising.localFunctions.has(node.opType);
    return isKnown ? [node] : raiseNode(node, from, scope);
  });
  raising.results.push({ body, nodes, scope });
}

function raiseNode(node: NodeProto, from: number, scope: RewriteScope): NodeProto[] {
  const { targetOpset } = scope.rewrite;
  const versions = opsetVersions.get(node.opType);
  const [introduced] = versions ?? [];
  const removed = removedOperators.get(node.opType) ?? Infinity;
  if (versions === undefined || introduced === undefined || introduced > from || removed <= from) {
    const place = node.name && ` (node ${quoteName(node.name)})`;
    throw cannotRaiseError(scope, from, `it has no operator "${node.opType}"${place}`);
  }
  if (from < raisableOpsets.first) {
    const oldest = `${raisableOpsets.first} is the oldest that is supported`;
    throw cannotRaiseError(scope, from, `${oldest} (operator "${node.opType}")`);
  }
  const next = versions.find((version) => version > from && version <= targetOpset);
  if (next === undefined) return [node];
  const change = opsetChanges[node.opType]?.[next];
  return change === undefined
    ? raiseNode(node, next, scope)
    : change(node, scope).flatMap((replacement) => raiseNode(replacement, next, scope));
}

function cannotRaiseError({ rewrite }: RewriteScope, from: number, reason: string): ServiceError {
  const message = `Cannot raise opset ${from} to ${rewrite.targetOpset}: ${reason}`;
  return new ServiceError("model_opset_unsupported", message);
}

/** Operators that were removed, and the first opset without them. */
const removedOperators: ReadonlyMap<string, number> = new Map([
  ["Scatter", 11],
  ["Upsample", 10],
]);

/** The lowest IR version that models of an opset may have (ONNX Versioning.md). */
export function minimumIrVersion(opset: number): number {
  const entry = irVersions.findLast(([firstOpset]) => firstOpset <= opset);
  return entry === undefined ? 3 : entry[1];
}

/** First opset that came with an IR version, and that IR version. */
const irVersions = [
  [1, 3],
  [9, 4],
  [10, 5],
  [11, 6],
  [12, 7],
  [15, 8],
  [19, 9],
  [21, 10],
  [23, 11],
  [24, 12],
  [25, 13],
  [28, 14],
] as const;

import { type Alignment, alignNodes } from "./align-nodes.ts";
import { estimateDistance } from "./sketch-weight.ts";
import { at } from "../onnx/at.ts";
import {
  type ModelDiff,
  modelDiffLimits,
  type NodeChange,
  showPart,
  type WeightChange,
} from "../../contract/jobs/model-diff.ts";
import type {
  DescribedNode,
  DescribedWeight,
  ModelDescription,
} from "../../contract/models/model-description.ts";

const maxNeighbours = 3;

/** How a model differs from the one before: nodes, weights and by how much, and its interface. */
export function compareModels(before: ModelDescription, after: ModelDescription): ModelDiff {
  const alignment = alignNodes(before, after);
  const weights = compareWeights(before, after, alignment);
  const nodes = compareNodes(before, after, alignment);
  return {
    values: compareValues(before, after),
    nodes: nodes.counts,
    weights: weights.counts,
    nodeChanges: nodes.changes
      .toSorted((one, other) => rankNodeChange(one) - rankNodeChange(other))
      .slice(0, modelDiffLimits.entries),
    weightChanges: weights.changes
      .toSorted((one, other) => (other.distance ?? Infinity) - (one.distance ?? Infinity))
      .slice(0, modelDiffLimits.entries),
  };
}

/** Other nodes say more than other operators, and those more than what a node takes. */
function rankNodeChange({ how, what }: NodeChange): number {
  if (how !== "changed") return 0;
  return what.includes("operator") ? 1 : 2;
}

function compareValues(before: ModelDescription, after: ModelDescription): ModelDiff["values"] {
  const opsets = ({ opsets: of }: ModelDescription) =>
    new Map(Object.entries(of).map(([domain, version]) => [domain, String(version)]));
  const types = (values: ModelDescription["inputs"]) =>
    new Map(values.map(({ name, type }) => [name, type]));
  return [
    ...compareMaps("opset", opsets(before), opsets(after)),
    ...compareMaps("input", types(before.inputs), types(after.inputs)),
    ...compareMaps("output", types(before.outputs), types(after.outputs)),
  ];
}

function compareMaps(
  what: ModelDiff["values"][number]["what"],
  before: ReadonlyMap<string, string>,
  after: ReadonlyMap<string, string>,
): ModelDiff["values"] {
  const names = new Set([...before.keys(), ...after.keys()]);
  return [...names].flatMap((name) => {
    const [was, is] = [before.get(name), after.get(name)];
    if (was === is) return [];
    const shown = (text: string | undefined) => (text === undefined ? null : showPart(text));
    return { what, name: showPart(name), before: shown(was), after: shown(is) };
  });
}

/** Pairs weights by name, then by content, then by the place in nodes that are the same. */
function compareWeights(before: ModelDescription, after: ModelDescription, nodes: Alignment) {
  const pairs = pairWeights(before, after, nodes);
  const paired = new Set(pairs.values());
  const changes: WeightChange[] = [];
  const counts = { added: 0, removed: 0, changed: 0, renamed: 0, same: 0 };
  for (const weight of before.weights) {
    const other = pairs.get(weight);
    if (other === undefined) {
      counts.removed++;
      const change = { before: describeWeight(weight), after: null, distance: null };
      changes.push({ how: "removed", name: showPart(weight.name), ...change });
    } else if (!isSameContent(weight, other)) {
      counts.changed++;
      changes.push(describeWeightChange(weight, other));
    } else if (weight.name === other.name) counts.same++;
    else counts.renamed++;
  }
  for (const weight of after.weights) {
    if (paired.has(weight)) continue;
    counts.added++;
    const change = { before: null, after: describeWeight(weight), distance: null };
    changes.push({ how: "added", name: showPart(weight.name), ...change });
  }
  return { counts, changes };
}

function pairWeights(
  before: ModelDescription,
  after: ModelDescription,
  nodes: Alignment,
): ReadonlyMap<DescribedWeight, DescribedWeight> {
  const pairs = new Map<DescribedWeight, DescribedWeight>();
  const free = new Set(after.weights);
  const pair = (weight: DescribedWeight | undefined, other: DescribedWeight | undefined) => {
    if (!weight || !other || pairs.has(weight) || !free.delete(other)) return;
    pairs.set(weight, other);
  };
  const [ofBefore, ofAfter] = [byName(before), byName(after)];
  for (const weight of before.weights) {
    const other = ofAfter.get(weight.name);
    if (other && isSameContent(weight, other)) pair(weight, other);
  }
  for (const [position, otherPosition] of nodes) {
    const [inputs, others] = [
      at(before.nodes, position).inputs,
      at(after.nodes, otherPosition).inputs,
    ];
    for (const [i, name] of inputs.entries())
      pair(ofBefore.get(name), ofAfter.get(others[i] ?? ""));
  }
  for (const weight of before.weights) pair(weight, ofAfter.get(weight.name));
  const byContent = Map.groupBy(free, contentKey);
  for (const weight of before.weights) {
    if (!pairs.has(weight)) pair(weight, byContent.get(contentKey(weight))?.shift());
  }
  return pairs;
}

function byName({ weights }: ModelDescription): ReadonlyMap<string, DescribedWeight> {
  return new Map(weights.map((weight) => [weight.name, weight]));
}

function contentKey({ digest, type, shape }: DescribedWeight): string {
  return `${digest} ${type} ${shape.join()}`;
}

function isSameContent(weight: DescribedWeight, other: DescribedWeight): boolean {
  return contentKey(weight) === contentKey(other);
}

function describeWeight({ type, shape }: DescribedWeight): string {
  return showPart(`${type}[${shape.join(",")}]`);
}

function describeWeightChange(weight: DescribedWeight, other: DescribedWeight): WeightChange {
  const isComparable = weight.shape.join() === other.shape.join();
  return {
    how: "changed",
    name: showPart(other.name),
    before: describeWeight(weight),
    after: describeWeight(other),
    distance: isComparable ? estimateDistance(weight, other) : null,
  };
}

/** Which node makes each value, and which nodes take it. */
class Wiring {
  readonly #nodes: readonly DescribedNode[];
  readonly #producers = new Map<string, number>();
  readonly #consumers = new Map<string, number[]>();

  constructor({ nodes }: ModelDescription) {
    this.#nodes = nodes;
    for (const [position, { inputs, outputs }] of nodes.entries()) {
      for (const output of outputs) if (output !== "") this.#producers.set(output, position);
      for (const input of inputs) {
        const takers = this.#consumers.get(input);
        if (takers) takers.push(position);
        else this.#consumers.set(input, [position]);
      }
    }
  }

  producer(value: string): number | undefined {
    return this.#producers.get(value);
  }

  neighbours(position: number): Pick<NodeChange, "from" | "to"> {
    const { inputs, outputs } = at(this.#nodes, position);
    const from = inputs.flatMap((input) => this.#producers.get(input) ?? []);
    const to = outputs.flatMap((output) => this.#consumers.get(output) ?? []);
    return { from: this.#names(from), to: this.#names(to) };
  }

  #names(positions: readonly number[]): string[] {
    const unique = [...new Set(positions)].slice(0, maxNeighbours);
    return unique.map((position) => nodeName(at(this.#nodes, position)));
  }
}

function compareNodes(before: ModelDescription, after: ModelDescription, alignment: Alignment) {
  const [wiring, otherWiring] = [new Wiring(before), new Wiring(after)];
  const aligned = new Set(alignment.values());
  const changes: NodeChange[] = [];
  const counts = { added: 0, removed: 0, changed: 0, renamed: 0, same: 0 };
  for (const [position, node] of before.nodes.entries()) {
    const other = alignment.get(position);
    if (other === undefined) {
      counts.removed++;
      changes.push({
        how: "removed",
        ...describeNode(node),
        ...wiring.neighbours(position),
        what: [],
      });
      continue;
    }
    const now = at(after.nodes, other);
    const what = findNodeChanges(node, now, { alignment, wiring, otherWiring });
    if (what.length > 0) {
      counts.changed++;
      changes.push({
        how: "changed",
        ...describeNode(now),
        ...otherWiring.neighbours(other),
        what,
      });
    } else if (node.name === now.name) counts.same++;
    else counts.renamed++;
  }
  for (const [position, node] of after.nodes.entries()) {
    if (aligned.has(position)) continue;
    counts.added++;
    changes.push({
      how: "added",
      ...describeNode(node),
      ...otherWiring.neighbours(position),
      what: [],
    });
  }
  return { counts, changes };
}

interface Wirings {
  readonly alignment: Alignment;
  readonly wiring: Wiring;
  readonly otherWiring: Wiring;
}

function findNodeChanges(node: DescribedNode, now: DescribedNode, wirings: Wirings) {
  const { alignment, wiring, otherWiring } = wirings;
  const what: NodeChange["what"] = [];
  if (node.op !== now.op) what.push("operator");
  if (node.attributes !== now.attributes) what.push("attributes");
  const isSameInput = (input: string, i: number) => {
    const [producer, other] = [wiring.producer(input), otherWiring.producer(now.inputs[i] ?? "")];
    return producer === undefined ? other === undefined : alignment.get(producer) === other;
  };
  const isSameWiring = node.inputs.length === now.inputs.length && node.inputs.every(isSameInput);
  if (!isSameWiring) what.push("inputs");
  return what;
}

function describeNode(node: DescribedNode): Pick<NodeChange, "name" | "op"> {
  return { name: nodeName(node), op: showPart(node.op) };
}

function nodeName({ name, outputs }: DescribedNode): string {
  return showPart(name || (outputs[0] ?? ""));
}

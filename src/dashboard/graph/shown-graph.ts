import { computed, type ReadonlySignal, type Signal, signal } from "@preact/signals";
import {
  changeTones,
  type ColourMode,
  findTone,
  listNodeFacts,
  type NodeFacts,
  type Tone,
} from "./draw-graph.ts";
import type { DrawnGraph } from "./load-graph.ts";
import type { GraphPlace, GraphSide } from "./shown-part.ts";
import type { NodeChange } from "../../contract/jobs/model-diff.ts";

/** What a person has chosen to see of a model. */
export interface GraphChoice {
  readonly mode: Signal<ColourMode>;
  readonly side: Signal<GraphSide>;
  readonly at: Signal<GraphPlace>;
  /** Position of the node that is selected in that graph. */
  readonly selected: Signal<number | undefined>;
}

/** @param name of the node or weight that is shown first */
export function chooseFirst(name: string | undefined): GraphChoice {
  return {
    mode: signal("error"),
    side: signal("original"),
    at: signal(name === undefined ? [] : { names: [name] }),
    selected: signal(undefined),
  };
}

/** A graph with what a person has chosen to see of it. */
export class ShownGraph {
  readonly drawn: DrawnGraph;
  readonly facts: readonly NodeFacts[];
  readonly mostBytes: number;
  readonly mode: GraphChoice["mode"];
  readonly selected: GraphChoice["selected"];
  /** What the compression changed, of each node. */
  readonly changes: readonly (NodeChange | undefined)[];
  /** Of each node. */
  readonly tones: ReadonlySignal<readonly Tone[]>;
  /** The node in the middle of the drawing; set by what draws it. */
  findMiddle: () => number | undefined = () => undefined;
  readonly #side: GraphChoice["side"];
  readonly #at: GraphChoice["at"];
  readonly #ranked: ReadonlySignal<readonly number[]>;

  constructor(
    drawn: DrawnGraph,
    changes: readonly NodeChange[],
    { mode, side, at, selected }: GraphChoice,
  ) {
    this.drawn = drawn;
    this.changes = listChanges(drawn, changes);
    this.#side = side;
    this.mode = mode;
    this.selected = selected;
    this.#at = at;
    this.facts = listNodeFacts(drawn.part);
    this.mostBytes = this.facts.reduce((most, { bytes }) => Math.max(most, bytes), 0);
    this.tones = computed(() => {
      const colours = this.mode.value;
      return colours === "difference"
        ? this.changes.map((change) => changeTones[change?.how ?? "same"])
        : this.facts.map((facts) => findTone(colours, facts, this.mostBytes));
    });
    this.#ranked = computed(() => this.#rank());
  }

  /** Shows a subgraph of the selected node, by default its first, in place of this graph. */
  enter(subgraph = 0): void {
    const node = this.selected.value ?? -1;
    if (this.drawn.part.nodes[node]?.subgraphs[subgraph] === undefined) return;
    this.#at.value = [...this.drawn.path, { node, subgraph }];
    this.selected.value = undefined;
  }

  /** Shows a graph around this one again; its node is selected there. */
  leaveTo(depth: number): void {
    const left = this.drawn.path[depth];
    if (left === undefined) return;
    this.#at.value = this.drawn.path.slice(0, depth);
    this.selected.value = left.node;
  }

  /** Shows the graph whose node has this one. */
  leave(): void {
    this.leaveTo(this.drawn.path.length - 1);
  }

  /** Shows the graph of the other side at the node that is selected or in view, or near it. */
  turn(): void {
    const node = this.selected.value ?? this.findMiddle();
    const names = node === undefined ? [] : this.#listNames(node);
    this.selected.value = undefined;
    this.#at.value = names.length === 0 ? [] : { names };
    this.#side.value = this.drawn.side === "original" ? "result" : "original";
  }

  /** Positions of the nodes whose name or operator has a text, what matters most first. */
  find(text: string): readonly number[] {
    const wanted = text.trim().toLowerCase();
    if (wanted === "") return this.#ranked.value;
    const { nodes } = this.drawn.part;
    return this.#ranked.value.filter((position) => {
      const { name = "", opType = "" } = nodes[position] ?? {};
      return name.toLowerCase().includes(wanted) || opType.toLowerCase().includes(wanted);
    });
  }

  /** Names of a node and of those around it, the nearest first. */
  #listNames(from: number): string[] {
    const { nodes } = this.drawn.part;
    const near = [from];
    for (let place = 0; place < near.length && near.length < mostNear; place++) {
      const { inputs = [], gives = [] } = nodes[near[place] ?? -1] ?? {};
      const beside = [...gives.flatMap(({ to }) => to), ...inputs];
      near.push(...beside.filter((node) => !near.includes(node)));
    }
    return near.flatMap((position) => nodes[position]?.name ?? []);
  }

  #rank(): number[] {
    const weights =
      this.mode.value === "difference"
        ? this.changes.map((change) => (change === undefined ? 0 : 1))
        : this.facts.map(this.mode.value === "error" ? weighError : weighBytes);
    return [...this.facts.keys()].sort((a, b) => (weights[b] ?? 0) - (weights[a] ?? 0) || a - b);
  }
}

/** How many nearby nodes are looked for in the other graph, which nearly always has one of them. */
const mostNear = 64;

/** Those of this side, of each node. */
function listChanges({ part, side }: DrawnGraph, changes: readonly NodeChange[]) {
  const absent = side === "original" ? "added" : "removed";
  const here = changes.filter(({ how }) => how !== absent);
  const byName = new Map(here.map((change) => [change.name, change]));
  return part.nodes.map(({ kind, name }) => (kind === "node" ? byName.get(name) : undefined));
}

function weighError({ sqnrDb, hasWeights }: NodeFacts): number {
  if (sqnrDb !== undefined) return -sqnrDb;
  return hasWeights ? -Number.MAX_VALUE / 2 : -Number.MAX_VALUE;
}

function weighBytes({ bytes }: NodeFacts): number {
  return bytes;
}

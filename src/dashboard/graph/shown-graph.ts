import { computed, type ReadonlySignal, type Signal, signal } from "@preact/signals";
import {
  type ColourMode,
  findTone,
  listNodeFacts,
  type NodeFacts,
  type Tone,
} from "./draw-graph.ts";
import type { DrawnGraph } from "./load-graph.ts";
import type { GraphPath } from "./shown-part.ts";

/** What a person has chosen to see of a model. */
export interface GraphChoice {
  readonly mode: Signal<ColourMode>;
  /** Which graph, or a name for that which has the node. */
  readonly at: Signal<GraphPath | string>;
  /** Position of the node that is selected in that graph. */
  readonly selected: Signal<number | undefined>;
}

/** @param name of the node or weight that is shown first */
export function chooseFirst(name: string | undefined): GraphChoice {
  return { mode: signal("error"), at: signal(name ?? []), selected: signal(undefined) };
}

/** A graph with what a person has chosen to see of it. */
export class ShownGraph {
  readonly drawn: DrawnGraph;
  readonly facts: readonly NodeFacts[];
  readonly mostBytes: number;
  readonly mode: GraphChoice["mode"];
  readonly selected: GraphChoice["selected"];
  /** Of each node. */
  readonly tones: ReadonlySignal<readonly Tone[]>;
  readonly #at: GraphChoice["at"];
  readonly #ranked: ReadonlySignal<readonly number[]>;

  constructor(drawn: DrawnGraph, { mode, at, selected }: GraphChoice) {
    this.drawn = drawn;
    this.mode = mode;
    this.selected = selected;
    this.#at = at;
    this.facts = listNodeFacts(drawn.part);
    this.mostBytes = this.facts.reduce((most, { bytes }) => Math.max(most, bytes), 0);
    this.tones = computed(() =>
      this.facts.map((facts) => findTone(this.mode.value, facts, this.mostBytes)),
    );
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

  #rank(): number[] {
    const weigh = this.mode.value === "error" ? weighError : weighBytes;
    const weights = this.facts.map(weigh);
    return [...this.facts.keys()].sort((a, b) => (weights[b] ?? 0) - (weights[a] ?? 0) || a - b);
  }
}

function weighError({ sqnrDb, hasWeights }: NodeFacts): number {
  if (sqnrDb !== undefined) return -sqnrDb;
  return hasWeights ? -Number.MAX_VALUE / 2 : -Number.MAX_VALUE;
}

function weighBytes({ bytes }: NodeFacts): number {
  return bytes;
}

import { computed, type ReadonlySignal, signal } from "@preact/signals";
import {
  type ColourMode,
  findTone,
  listNodeFacts,
  type NodeFacts,
  type Tone,
} from "./draw-graph.ts";
import type { DrawnGraph } from "./load-graph.ts";

/** A graph with what a person has chosen to see of it. */
export class ShownGraph {
  readonly drawn: DrawnGraph;
  readonly facts: readonly NodeFacts[];
  readonly mostBytes: number;
  readonly mode = signal<ColourMode>("error");
  /** Position of a node. */
  readonly selected = signal<number | undefined>(undefined);
  /** Of each node. */
  readonly tones: ReadonlySignal<readonly Tone[]>;
  readonly #ranked: ReadonlySignal<readonly number[]>;

  constructor(drawn: DrawnGraph) {
    this.drawn = drawn;
    this.facts = listNodeFacts(drawn.graph);
    this.mostBytes = this.facts.reduce((most, { bytes }) => Math.max(most, bytes), 0);
    this.tones = computed(() =>
      this.facts.map((facts) => findTone(this.mode.value, facts, this.mostBytes)),
    );
    this.#ranked = computed(() => this.#rank());
  }

  /** Positions of the nodes whose name or operator has a text, what matters most first. */
  find(text: string): readonly number[] {
    const wanted = text.trim().toLowerCase();
    if (wanted === "") return this.#ranked.value;
    const { nodes } = this.drawn.graph;
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

import type { ModelGraph } from "../../contract/jobs/model-graph.ts";
import { formatBytes } from "../../contract/text/format-bytes.ts";
import { lowDb } from "../shared/low-db.ts";
import type { Palette } from "../shared/palette.ts";

/** What nodes are coloured by. */
export type ColourMode = "error" | "bytes" | "change";

/** Names of tokens; `none` for nodes without a weight. */
export type Tone = "bad" | "warn" | "work" | "better" | "wait" | "none";

/** What is known of a node, from its weights. */
export interface NodeFacts {
  /** Of the original's weights. */
  readonly bytes: number;
  /** Of the worst weight; undefined where none has an error. */
  readonly sqnrDb: number | undefined;
  readonly isChanged: boolean;
  readonly hasWeights: boolean;
}

const noFacts: NodeFacts = { bytes: 0, sqnrDb: undefined, isChanged: false, hasWeights: false };

export function listNodeFacts({ nodes, weights }: ModelGraph): NodeFacts[] {
  return nodes.map((node) => {
    if (node.weights.length === 0) return noFacts;
    const own = node.weights.flatMap((position) => weights[position] ?? []);
    const errors = own.flatMap(({ sqnrDb }) => sqnrDb ?? []);
    return {
      bytes: own.reduce((sum, { originalBytes }) => sum + originalBytes, 0),
      sqnrDb: errors.length === 0 ? undefined : Math.min(...errors),
      isChanged: own.some(({ form }) => form !== null),
      hasWeights: true,
    };
  });
}

/** Shares of the largest node's bytes from which colours change. */
const byteShares = { most: 0.5, much: 0.1 } as const;

/** The colour of a node; `mostBytes` are those of the largest node. */
export function findTone(mode: ColourMode, facts: NodeFacts, mostBytes: number): Tone {
  if (!facts.hasWeights) return "none";
  if (mode === "change") return facts.isChanged ? "work" : "wait";
  if (mode === "bytes") {
    if (facts.bytes >= byteShares.most * mostBytes) return "bad";
    return facts.bytes >= byteShares.much * mostBytes ? "warn" : "wait";
  }
  if (facts.sqnrDb === undefined) return "wait";
  if (facts.sqnrDb < lowDb.bad) return "bad";
  return facts.sqnrDb < lowDb.warn ? "warn" : "work";
}

/** What the colours mean, worst first. */
export function listLegend(mode: ColourMode, mostBytes: number): [Tone, string][] {
  const legends: Readonly<Record<ColourMode, [Tone, string][]>> = {
    error: [
      ["bad", `below ${lowDb.bad} dB`],
      ["warn", `below ${lowDb.warn} dB`],
      ["work", `${lowDb.warn} dB and more`],
      ["wait", "left alone"],
    ],
    bytes: [
      ["bad", `from ${formatBytes(byteShares.most * mostBytes)}`],
      ["warn", `from ${formatBytes(byteShares.much * mostBytes)}`],
      ["wait", "smaller"],
    ],
    change: [
      ["work", "changed"],
      ["wait", "left alone"],
    ],
  };
  return [...legends[mode], ["none", "no weight"]];
}

export function toneColour(palette: Palette, tone: Tone): string {
  return tone === "none" ? palette.sunken : palette[tone];
}

import type { ModelDiff, NodeChange } from "./model-diff.ts";
import { formatCount } from "../text/format-count.ts";
import { formatPercent } from "../text/format-figure.ts";

/**
 * The changes in a few words: `1 node added, 2 weights changed by up to 3.1 %`; `quote` makes
 * untrusted text harmless where they are shown.
 */
export function summarizeChanges(
  { values, nodes, weights, weightChanges }: ModelDiff,
  quote: (text: string) => string = (text) => text,
): string {
  const largest = weightChanges.reduce((most, { distance }) => Math.max(most, distance ?? 0), 0);
  const by = largest > 1 ? ", some wholly" : ` by up to ${formatPercent(largest)}`;
  const ofValues = countValues(values, quote);
  if (isMostlyAnother(nodes)) return [describeKept(nodes), ...ofValues].join(", ");
  const parts = [
    ...ofValues,
    ...countWords("node", nodes),
    ...countWords("weight", weights).map((text) =>
      largest > 0 && text.endsWith("changed") ? text + by : text,
    ),
  ];
  return parts.join(", ");
}

/** A few nodes and weights of many say nothing where most are others. */
function describeKept({ removed, changed, renamed, same }: ModelDiff["nodes"]): string {
  const kept = renamed + same;
  return `mostly another graph: ${kept} of ${kept + removed + changed} nodes are as they were`;
}

/** Whether less than half of the nodes before are still there as they were. */
export function isMostlyAnother({ removed, changed, renamed, same }: ModelDiff["nodes"]): boolean {
  return renamed + same < removed + changed;
}

/** What a model is that differs from another one in names at most. */
export function describeSameModel(other: string, { nodes, weights }: ModelDiff): string {
  const renamed = [
    ...(nodes.renamed > 0 ? [formatCount(nodes.renamed, "node")] : []),
    ...(weights.renamed > 0 ? [formatCount(weights.renamed, "weight")] : []),
  ];
  const names = renamed.length === 0 ? "" : `, with other names of ${renamed.join(" and ")}`;
  return `The same model as ${other}${names}.`;
}

/** How much a weight changed; beyond its own norm, the figure says nothing more. */
export function describeDistance(distance: number): string {
  return distance > 1 ? "more than 100 %" : formatPercent(distance);
}

/** Opsets with their versions, inputs and outputs by their number. */
function countValues(values: ModelDiff["values"], quote: (text: string) => string): string[] {
  const opsets = values.filter(({ what }) => what === "opset");
  const other = values.length - opsets.length;
  const named = opsets.map(({ name, before, after }) => {
    const domain = name === "ai.onnx" ? "" : ` of ${quote(name)}`;
    return `opset${domain} ${quote(before ?? "none")} → ${quote(after ?? "none")}`;
  });
  if (other === 0) return named;
  return [...named, `${formatCount(other, "input or output", "inputs and outputs")} changed`];
}

function countWords(what: string, counts: ModelDiff["nodes"]): string[] {
  return (["added", "removed", "changed"] as const).flatMap((how) => {
    const count = counts[how];
    return count === 0 ? [] : `${formatCount(count, what)} ${how}`;
  });
}

/** `added`, or what is different of a node: `other attributes and inputs`. */
export function describeNodeChange({ how, what }: NodeChange): string {
  return what.length === 0 ? how : `other ${what.join(" and ")}`;
}

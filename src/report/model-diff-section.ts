import { foldSection, type Section } from "./compose-sections.ts";
import { inlineCode, mermaidLabel, tableHead, tableRow } from "./markdown.ts";
import type { Job } from "../contract/jobs/job.ts";
import {
  isSameModel,
  type ModelDiff,
  type NodeChange,
  type WeightChange,
} from "../contract/jobs/model-diff.ts";
import { formatPercent } from "../contract/text/format-figure.ts";

type ComparedJob = Pick<Job, "telemetry" | "baseline">;

/**
 * How the job's model differs from its baseline's, behind a line that says so in short; none where
 * they were not compared.
 */
export function modelDiffSections({ telemetry: { modelDiff }, baseline }: ComparedJob): Section[] {
  if (modelDiff === undefined || baseline === null) return [];
  const against = `the model of ${inlineCode(baseline.branch)}`;
  if (isSameModel(modelDiff)) return [{ head: `The same model as ${against}.`, rows: [] }];
  const title = `Against the model of ${codeInHtml(baseline.branch)}: ${summarizeChanges(modelDiff)}`;
  const parts = [
    valueRows(modelDiff),
    nodeRows(modelDiff),
    weightRows(modelDiff),
    [drawing(modelDiff)],
  ];
  const [head = "", ...others] = parts
    .map((lines) => lines.join("\n"))
    .filter((text) => text !== "");
  return [foldSection(title, { head: [head, ...others].join("\n\n"), rows: [] })];
}

/** The changes in a few words: `1 node added, 2 weights changed by up to 3.1 %`. */
export function summarizeChanges({ values, nodes, weights, weightChanges }: ModelDiff): string {
  const [largest] = weightChanges.flatMap(({ distance }) => distance ?? []);
  const by = largest === undefined ? "" : ` by up to ${formatPercent(largest)}`;
  const parts = [
    ...countValues(values),
    ...countWords("node", nodes),
    ...countWords("weight", weights).map((text) => (text.endsWith("changed") ? text + by : text)),
  ];
  return parts.filter((text) => text !== "").join(", ");
}

/** Opsets with their versions, inputs and outputs by their number. */
function countValues(values: ModelDiff["values"]): string[] {
  const opsets = values.filter(({ what }) => what === "opset");
  const other = values.length - opsets.length;
  const named = opsets.map(({ name, before, after }) => {
    const domain = name === "ai.onnx" ? "" : ` of ${name}`;
    return `opset${domain} ${before ?? "none"} → ${after ?? "none"}`;
  });
  if (other === 0) return named;
  return [...named, `${other} ${other === 1 ? "input or output" : "inputs and outputs"} changed`];
}

function countWords(what: string, counts: ModelDiff["nodes"]): string[] {
  return (["added", "removed", "changed"] as const).flatMap((how) => {
    const count = counts[how];
    return count === 0 ? [] : `${count} ${what}${count === 1 ? "" : "s"} ${how}`;
  });
}

function valueRows({ values }: ModelDiff): string[] {
  if (values.length === 0) return [];
  const rows = values.map(({ what, name, before, after }) =>
    tableRow([what, inlineCode(name), code(before), code(after)]),
  );
  return [tableHead(["", "name", "before", "now"]), ...rows];
}

function nodeRows({ nodeChanges, nodes }: ModelDiff): string[] {
  if (nodeChanges.length === 0) return [];
  const rows = nodeChanges.map((change) =>
    tableRow([inlineCode(change.name), inlineCode(change.op), describeNodeChange(change)]),
  );
  const more = nodes.added + nodes.removed + nodes.changed - nodeChanges.length;
  return [tableHead(["node", "operator", "change"]), ...rows, ...moreLine(more, "nodes")];
}

/** `added`, or what is different of a node: `other attributes and inputs`. */
export function describeNodeChange({ how, what }: NodeChange): string {
  return what.length === 0 ? how : `other ${what.join(" and ")}`;
}

function weightRows({ weightChanges, weights }: ModelDiff): string[] {
  if (weightChanges.length === 0) return [];
  const rows = weightChanges.map((change) =>
    tableRow([
      inlineCode(change.name),
      code(change.before),
      code(change.after),
      describeWeightChange(change),
    ]),
  );
  const more = weights.added + weights.removed + weights.changed - weightChanges.length;
  const head = tableHead(["weight", "before", "now", "change"]);
  return [head, ...rows, ...moreLine(more, "weights")];
}

function describeWeightChange({ how, distance }: WeightChange): string {
  return distance === null ? how : `by about ${formatPercent(distance)} of its norm`;
}

function moreLine(count: number, what: string): string[] {
  return count > 0 ? ["", `${count} more ${what} in \`diff.json\`.`] : [];
}

function code(text: string | null): string {
  return text === null ? "–" : inlineCode(text);
}

const classes = {
  added: "fill:#dafbe1,stroke:#1a7f37,color:#1f2328",
  removed: "fill:#ffebe9,stroke:#cf222e,color:#1f2328,stroke-dasharray:4",
  changed: "fill:#fff8c5,stroke:#9a6700,color:#1f2328",
} as const satisfies Record<NodeChange["how"], string>;

/** The nodes that differ between those around them, in Mermaid; empty without any. */
function drawing({ nodeChanges }: ModelDiff): string {
  if (nodeChanges.length === 0) return "";
  const ids = new Map<string, string>();
  const idOf = (name: string) => {
    const id = ids.get(name) ?? `n${ids.size}`;
    ids.set(name, id);
    return id;
  };
  const marks = nodeChanges.map(({ name, how }) => `  class ${idOf(name)} ${how}`);
  const edges = nodeChanges.flatMap(({ name, from, to }) => [
    ...from.map((other) => `  ${idOf(other)} --> ${idOf(name)}`),
    ...to.map((other) => `  ${idOf(name)} --> ${idOf(other)}`),
  ]);
  const operators = new Map(nodeChanges.map(({ name, op }) => [name, op]));
  const nodes = [...ids].map(([name, id]) => {
    const text = [operators.get(name) ?? "", name].filter((part) => part !== "").join(" ");
    return `  ${id}["${mermaidLabel(text)}"]`;
  });
  const styles = Object.entries(classes).map(([name, style]) => `  classDef ${name} ${style}`);
  const lines = ["flowchart LR", ...nodes, ...new Set(edges), ...styles, ...marks];
  return ["```mermaid", ...lines, "```"].join("\n");
}

/** Foreign text as code in the title of a fold, which is HTML. */
function codeInHtml(text: string): string {
  return `<code>${text.replaceAll(/[^\w ./-]/g, "_")}</code>`;
}

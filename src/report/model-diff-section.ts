import { foldSection, type Section } from "./compose-sections.ts";
import { inlineCode, mermaidLabel, tableHead, tableRow, toOneLine } from "./markdown.ts";
import type { Job } from "../contract/jobs/job.ts";
import {
  isSameModel,
  type ModelDiff,
  type NodeChange,
  type WeightChange,
} from "../contract/jobs/model-diff.ts";
import {
  describeDistance,
  describeNodeChange,
  describeSameModel,
  isMostlyAnother,
  summarizeChanges,
} from "../contract/jobs/describe-model-diff.ts";

type ComparedJob = Pick<Job, "telemetry" | "baseline">;

/**
 * How the job's model differs from its baseline's, after a line that says so in short; none where
 * they were not compared.
 */
export function modelDiffSections({ telemetry: { modelDiff }, baseline }: ComparedJob): Section[] {
  if (modelDiff === undefined || baseline === null) return [];
  const against = `the model of ${inlineCode(baseline.branch)}`;
  if (isSameModel(modelDiff)) return [{ head: describeSameModel(against, modelDiff), rows: [] }];
  const changes = summarizeChanges(modelDiff, escapeInHtml);
  const title = `Against the model of <code>${escapeInHtml(baseline.branch)}</code>: ${changes}`;
  const details = [nodeRows(modelDiff), weightRows(modelDiff), [drawing(modelDiff)]];
  const parts = [valueRows(modelDiff), ...(isMostlyAnother(modelDiff.nodes) ? [] : details)];
  const [head = "", ...others] = parts
    .map((lines) => lines.join("\n"))
    .filter((text) => text !== "");
  return [foldSection(title, { head: [head, ...others].join("\n\n"), rows: [] })];
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
  return distance === null ? how : `by about ${describeDistance(distance)} of its norm`;
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

/** Foreign text in the title of a fold, which is HTML on one line. */
function escapeInHtml(text: string): string {
  return toOneLine(text).replaceAll(/[&<>"'@#]/g, (char) => `&#${char.charCodeAt(0)};`);
}

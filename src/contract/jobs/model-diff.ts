import { z } from "zod";
import { graphLimits } from "../models/graph-limits.ts";
import { truncate } from "../text/truncate.ts";
import { replaceHiddenCharacters } from "../text/hidden-characters.ts";
import { shownLine } from "../text/shown-line.ts";

const maxNameLength = 200;
const name = shownLine(maxNameLength);
/** Nodes and tensors of any model. */
const count = z
  .int()
  .min(0)
  .max(2 * graphLimits.parts);
/** Larger ones say nothing, and their squares are not finite. */
export const maxDistance = 1e155;

const valueChange = z.object({
  what: z.enum(["input", "output", "opset"]),
  name,
  before: name.nullable().describe("Null where it was added."),
  after: name.nullable().describe("Null where it was removed."),
});

const nodeChange = z.object({
  how: z.enum(["added", "removed", "changed"]),
  name,
  op: name,
  what: z
    .array(z.enum(["operator", "attributes", "inputs"]))
    .max(3)
    .describe("What is different of a changed node."),
  from: z.array(name).max(3).describe("Nodes whose outputs it takes, at most 3."),
  to: z.array(name).max(3).describe("Nodes that take its outputs, at most 3."),
});
export type NodeChange = z.infer<typeof nodeChange>;

const weightChange = z.object({
  how: z.enum(["added", "removed", "changed"]),
  name,
  before: name.nullable().describe("Element type and shape; null where it was added."),
  after: name.nullable().describe("Null where it was removed."),
  distance: z
    .number()
    .min(0)
    .max(maxDistance)
    .nullable()
    .describe(
      "Norm of the difference relative to the norm before, estimated to about an eighth of " +
        "itself; null where the two cannot be subtracted.",
    ),
});
export type WeightChange = z.infer<typeof weightChange>;

const counts = z.object({
  added: count,
  removed: count,
  changed: count,
  renamed: count.describe("Same but for their names."),
  same: count,
});

/** Most entries of each list of `diff.json`, and of a job's telemetry. */
export const modelDiffLimits = { entries: 1_000, telemetryEntries: 12 } as const;

/** How a model differs from another one. */
export const modelDiff = z.object({
  values: z.array(valueChange).describe("Opsets, inputs and outputs."),
  nodes: counts,
  weights: counts,
  nodeChanges: z.array(nodeChange).describe("Added and removed ones come first."),
  weightChanges: z.array(weightChange).describe("Those that changed most come first."),
});
export type ModelDiff = z.infer<typeof modelDiff>;

const { telemetryEntries } = modelDiffLimits;

/** The start of each list, for reports. */
export const shortModelDiff = modelDiff.extend({
  values: z.array(valueChange).max(telemetryEntries),
  nodeChanges: z.array(nodeChange).max(telemetryEntries),
  weightChanges: z.array(weightChange).max(telemetryEntries),
});

export function shortenModelDiff(diff: ModelDiff): z.infer<typeof shortModelDiff> {
  return {
    ...diff,
    values: diff.values.slice(0, telemetryEntries),
    nodeChanges: diff.nodeChanges.slice(0, telemetryEntries),
    weightChanges: diff.weightChanges.slice(0, telemetryEntries),
  };
}

/** A name or a type of a model, which may be any text, as a diff has it. */
export function showPart(text: string): string {
  return truncate(replaceHiddenCharacters(text), maxNameLength);
}

/** Whether two models are the same, whatever their nodes and weights are called. */
export function isSameModel({ values, nodes, weights }: ModelDiff): boolean {
  const parts = [nodes, weights];
  return (
    values.length === 0 && parts.every((part) => part.added + part.removed + part.changed === 0)
  );
}

import { z } from "zod";

/** Limits of `graph.json`. The engine reads no model with more nodes and tensors. */
export const modelGraphLimits = {
  nodes: 100_000,
  weights: 100_000,
  /** Longer names end with an ellipsis, characters. */
  name: 200,
} as const;

const position = z.int().min(0);
const name = z.string().max(modelGraphLimits.name);

const graphNode = z.object({
  name: name.describe("The node's name, or that of its first output where it has none."),
  opType: name.describe("The operator, such as `MatMul`."),
  inputs: z.array(position).describe("Positions of the nodes whose outputs the node takes."),
  weights: z.array(position).describe("Positions of the weights that the node computes with."),
});
export type ModelGraphNode = z.infer<typeof graphNode>;

const graphWeight = z.object({
  name,
  originalBytes: z.number().min(0).describe("Bytes of it in the original."),
  resultBytes: z.number().min(0).describe("Bytes of it in the result."),
  form: z.string().nullable().describe("Its form in the result; null where it does not change."),
  reason: z
    .string()
    .nullable()
    .describe("Why it does not change, or does not get the recipe's own scheme."),
  sqnrDb: z
    .number()
    .nullable()
    .describe("Error of its new form; null where it does not change or was not computed."),
});
export type ModelGraphWeight = z.infer<typeof graphWeight>;

/**
 * Content of `graph.json`: the nodes of the original's graph but constants, and what was done to
 * their weights. A node stands for its subgraphs too.
 */
export const modelGraph = z.object({
  nodes: z.array(graphNode).max(modelGraphLimits.nodes),
  weights: z.array(graphWeight).max(modelGraphLimits.weights),
});
export type ModelGraph = z.infer<typeof modelGraph>;

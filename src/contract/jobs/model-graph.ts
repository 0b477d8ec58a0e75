import { z } from "zod";

/** Limits of `graph.json`. The engine reads no model with more nodes and tensors. */
export const modelGraphLimits = {
  nodes: 100_000,
  weights: 100_000,
  /** Longer names and values of attributes end with an ellipsis, characters. */
  text: 200,
} as const;

const position = z.int().min(0);
const text = z.string().max(modelGraphLimits.text);

const graphValue = z.object({
  name: text,
  type: text
    .nullable()
    .describe(
      "Element type and dimensions, such as `float32[1,3,h,w]`; null where neither the model nor " +
        "the runtime says it.",
    ),
});

/** Null for an optional value that is absent. */
const operand = position.nullable();

const graphNode = z.object({
  name: text.describe("The node's name, or that of its first output where it has none."),
  opType: text.describe("The operator, such as `MatMul`."),
  inputs: z.array(operand).describe("Positions of the values that it takes, in their order."),
  outputs: z.array(operand).describe("Positions of the values that it gives, in their order."),
  captured: z.array(position).describe("Values of this graph that its subgraphs take."),
  attributes: z.array(z.object({ name: text, value: text })).describe("All but graphs."),
  weights: z
    .array(position)
    .describe("Positions of the weights that the node and its subgraphs compute with."),
  get subgraphs() {
    return z.array(graphPart);
  },
});
export type ModelGraphNode = z.infer<typeof graphNode>;

/** A graph: its nodes but constants, and the values that lead from one to another. */
const graphPart = z.object({
  name: text.describe("Of a subgraph, its attribute, such as `then_branch`."),
  values: z.array(graphValue),
  inputs: z
    .array(position)
    .describe("Values that come from outside; in a subgraph also those of graphs around it."),
  outputs: z.array(position),
  nodes: z.array(graphNode).max(modelGraphLimits.nodes),
});
export type ModelGraphPart = z.infer<typeof graphPart>;

const graphWeight = z.object({
  name: text,
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

/** Content of `graph.json`: the graphs of original and result, and what was done to the weights. */
export const modelGraph = z.object({
  graph: graphPart,
  result: graphPart
    .optional()
    .describe(
      "The result's, without weights; absent where there is none, or one with too many nodes.",
    ),
  weights: z.array(graphWeight).max(modelGraphLimits.weights),
});
export type ModelGraph = z.infer<typeof modelGraph>;

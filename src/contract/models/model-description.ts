import { z } from "zod";
import { graphLimits } from "./graph-limits.ts";

/** Most bytes of `description.json` that another job reads. */
export const maxDescriptionBytes = 64 * 1024 * 1024;

const text = z.string().max(2_000);
const digest = z.string().regex(/^[0-9a-f]{0,32}$/);

const describedValue = z.object({
  name: text,
  type: text.describe("Element type and shape, such as `float32[1,3,height]`."),
});

const describedNode = z.object({
  name: text.describe("Empty where the node has none."),
  op: text.describe("The operator, with its domain where that is not ONNX's own."),
  attributes: digest.describe("Of its attributes, subgraphs too; empty without any."),
  inputs: z.array(text),
  outputs: z.array(text),
});
export type DescribedNode = z.infer<typeof describedNode>;

const describedWeight = z.object({
  name: text,
  type: text,
  shape: z.array(z.number()),
  bytes: z.number().min(0),
  digest: digest.describe("Of its content, the first half of its SHA-256."),
  norm: z.number().nullable().describe("Root of the sum of its squares; null where not computed."),
  sketch: z
    .array(z.number())
    .max(64)
    .nullable()
    .describe(
      "Sums of its elements with random signs, the same for all weights, from which the distance " +
        "of two weights is estimated without either; null where it was not computed.",
    ),
});
export type DescribedWeight = z.infer<typeof describedWeight>;

/** Content of `description.json`: what tells a model from another one, without its weights. */
export const modelDescription = z.object({
  opsets: z.record(text, z.number()).describe("Versions by domain; ONNX's own is `ai.onnx`."),
  inputs: z.array(describedValue),
  outputs: z.array(describedValue),
  nodes: z.array(describedNode).max(graphLimits.parts),
  weights: z.array(describedWeight).max(graphLimits.parts),
});
export type ModelDescription = z.infer<typeof modelDescription>;

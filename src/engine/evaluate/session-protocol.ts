import { z } from "zod";
import { tensorData } from "./tensor-data.ts";

/** A tensor of a model's signature; open dimensions have their names, which may be empty. */
const tensorSignature = z.object({
  name: z.string(),
  isTensor: z.literal(true),
  type: z.string(),
  shape: z.array(z.union([z.int(), z.string()])),
});
export type TensorSignature = z.infer<typeof tensorSignature>;

const valueSignature = z.union([
  tensorSignature,
  z.object({ name: z.string(), isTensor: z.literal(false) }),
]);

const key = z.string().describe("Which of the process's open models is meant.");
const feed = z.string().describe("Which of the process's feeds is meant.");
const reference = z.string().describe("Which of the logits of another model are meant.");
const outputs = z.array(z.string()).describe("Outputs to fetch.");

/** Outputs whose rows are summed up: products of their first columns with these and those after. */
const summedRows = z.object({
  path: z.string().describe("File that the sums are written to."),
  values: z.array(z.string()).describe("Names of the outputs, which all have such rows."),
  columns: z.int().min(1).describe("Values of a row."),
  segments: z.array(
    z.object({
      first: z.int().describe("First column of the segment."),
      rows: z.int().describe("Its first columns, whose products are summed up."),
      size: z.int().describe("All of its columns."),
    }),
  ),
});
export type SummedRows = z.infer<typeof summedRows>;

/** A request to a session process, which has one reply. */
export const sessionRequest = z.discriminatedUnion("do", [
  z.object({
    do: z.literal("open"),
    key,
    modelPath: z.string(),
    executionProvider: z.enum(["cpu", "cuda"]),
    threads: z.int().min(1),
    optimize: z.boolean().describe("Whether the runtime may fuse, fold and rearrange the graph."),
    spinning: z.boolean().optional().describe("Whether threads that wait may stay awake; they do."),
    profilePrefix: z
      .string()
      .optional()
      .describe("Path that the name of a profile starts with; none without it."),
  }),
  z.object({ do: z.literal("close"), key }),
  z.object({ do: z.literal("feed"), feed, inputs: z.array(tensorData) }),
  z.object({
    do: z.literal("run"),
    key,
    feed,
    outputs,
    summed: z.array(z.string()).optional().describe("Outputs whose rows are summed up."),
    mask: z
      .custom<Uint8Array>((value) => value instanceof Uint8Array)
      .optional()
      .describe("Which of these rows count; all without it."),
  }),
  z.object({
    do: z.literal("begin-sums"),
    key,
    sums: z.array(summedRows).describe("What later runs sum up."),
  }),
  z.object({ do: z.literal("write-sums") }),
  z.object({
    do: z.literal("remember-logits"),
    reference,
    logits: tensorData,
    positions: z.int().min(1).describe("Rows of the logits."),
  }),
  z.object({
    do: z.literal("compare-tokens"),
    key,
    feed,
    reference,
  }),
  z.object({
    do: z.literal("time"),
    key,
    feed,
    outputs,
    runs: z.int().min(1).describe("Runs one after the other, each timed."),
  }),
  z.object({ do: z.literal("measure-memory") }),
  z.object({ do: z.literal("end-profile"), key }),
]);
export type SessionRequest = z.infer<typeof sessionRequest>;

const signature = z.object({ inputs: z.array(valueSignature), outputs: z.array(valueSignature) });
export type ModelSignature = z.infer<typeof signature>;

export const sessionReply = z.discriminatedUnion("is", [
  z.object({ is: z.literal("open"), signature }),
  z.object({ is: z.literal("closed") }),
  z.object({ is: z.literal("fed") }),
  z.object({ is: z.literal("outputs"), tensors: z.array(tensorData) }),
  z.object({ is: z.literal("summing") }),
  z.object({
    is: z.literal("sums"),
    written: z.array(
      z.object({
        path: z.string(),
        rows: z.int().describe("How many were summed up."),
        isFinite: z.boolean().describe("Whether all sums are."),
      }),
    ),
  }),
  z.object({
    is: z.literal("divergence"),
    nats: z.number().nullable().describe("Sum over the window; null where it is not finite."),
  }),
  z.object({
    is: z.literal("times"),
    milliseconds: z.array(z.number()).describe("Of each run, in their order."),
  }),
  z.object({ is: z.literal("memory"), peakBytes: z.int() }),
  z.object({ is: z.literal("profiled") }),
  z.object({ is: z.literal("error"), message: z.string() }),
]);
export type SessionReply = z.infer<typeof sessionReply>;

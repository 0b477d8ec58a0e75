import { z } from "zod";
import { elementTypeNames, type TensorData } from "./tensor-data.ts";

const tensorData = z.object({
  name: z.string(),
  type: z.enum(elementTypeNames),
  shape: z.array(z.int().min(0)),
  bytes: z.custom<Uint8Array>((value) => value instanceof Uint8Array),
});

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

/** Which of the process's open models is meant. */
interface OfModel {
  readonly key: string;
}

/** Which of the process's feeds is meant. */
interface OfFeed {
  readonly feed: string;
}

/** Which of the logits of another model are meant. */
interface OfReference {
  readonly reference: string;
}

interface OfOutputs {
  /** Outputs to fetch. */
  readonly outputs: readonly string[];
}

interface OpenRequest extends OfModel {
  readonly do: "open";
  readonly modelPath: string;
  readonly executionProvider: "cpu" | "cuda";
  readonly threads: number;
  /** Whether the runtime may fuse, fold and rearrange the graph. */
  readonly optimize: boolean;
  /**
   * Whether threads that wait stay awake, which is faster where no other program needs the
   * processor, as where models are used; they sleep where this is absent.
   */
  readonly spinning?: boolean | undefined;
  /** Path that the name of a profile starts with; none without it. */
  readonly profilePrefix?: string | undefined;
}

interface RunRequest extends OfModel, OfFeed, OfOutputs {
  readonly do: "run";
  /** Outputs whose rows are summed up. */
  readonly summed?: readonly string[] | undefined;
  /** Which of these rows count; all without it. */
  readonly mask?: Uint8Array | undefined;
}

interface RememberRequest extends OfReference {
  readonly do: "remember-logits";
  readonly logits: TensorData;
  /** Rows of the logits. */
  readonly positions: number;
}

interface TimeRequest extends OfModel, OfFeed, OfOutputs {
  readonly do: "time";
  /** Runs one after the other, each timed. */
  readonly runs: number;
}

/** Outputs whose rows are summed up: products of their first columns with these and those after. */
export interface SummedRows {
  /** File that the sums are written to. */
  readonly path: string;
  /** Names of the outputs, which all have such rows. */
  readonly values: readonly string[];
  /** Values of a row. */
  readonly columns: number;
  readonly segments: readonly RowSegment[];
}

interface RowSegment {
  /** First column of the segment. */
  readonly first: number;
  /** Its first columns, whose products are summed up. */
  readonly rows: number;
  /** All of its columns. */
  readonly size: number;
}

/** A request to a session process, which has one reply. */
export type SessionRequest =
  | { readonly do: "start-gpu" }
  | OpenRequest
  | ({ readonly do: "close" } & OfModel)
  | ({ readonly do: "feed"; readonly inputs: readonly TensorData[] } & OfFeed)
  | RunRequest
  | ({ readonly do: "begin-sums"; readonly sums: readonly SummedRows[] } & OfModel)
  | { readonly do: "write-sums" }
  | RememberRequest
  | ({ readonly do: "compare-tokens" } & OfModel & OfFeed & OfReference)
  | TimeRequest
  | { readonly do: "measure-memory" }
  | ({ readonly do: "end-profile" } & OfModel);

const signature = z.object({ inputs: z.array(valueSignature), outputs: z.array(valueSignature) });
export type ModelSignature = z.infer<typeof signature>;

export const sessionReply = z.discriminatedUnion("is", [
  z.object({ is: z.literal("started") }),
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

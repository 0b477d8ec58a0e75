import type { EvaluationWarning } from "../evaluate/evaluation-warning.ts";
import type {
  RowSums,
  RunnableModel,
  SessionMemory,
  WrittenSums,
} from "../runtime/model-session.ts";
import type { SampleSource } from "../samples/open-samples.ts";
import type { TensorData } from "../runtime/tensor-data.ts";
import type { SpoolMemory } from "./tensor-spool.ts";

export interface RunSettings {
  readonly executionProvider: "cpu" | "cuda";
  /** Threads of each operator. */
  readonly threads: number;
  /** Folder for files that live as long as the evaluation. */
  readonly scratchDirectory: string;
  readonly spoolMemory: SpoolMemory;
  readonly signal: AbortSignal;
  readonly log: (line: string) => void;
}

/** Samples, and the outputs that are fetched for each. */
export interface SampleWork {
  readonly source: SampleSource;
  readonly outputs: readonly string[];
  /** Values that are summed up where the model is run, and are not outputs that are visited. */
  readonly sums?: RowSums;
}

export interface SampleRun<Work extends SampleWork> {
  /** What the visitor chose. */
  readonly work: Work;
  /** Nothing is known of a model that was run in stages. */
  readonly memory: Partial<SessionMemory>;
  readonly warnings: readonly EvaluationWarning[];
}

/** What is done while a model is run on samples. */
export interface SampleVisitor<Work extends SampleWork> {
  /** Chooses the work; `model` has the model's signature and takes the samples that it takes. */
  readonly prepare: (model: RunnableModel) => Promise<Work>;
  /** Receives the outputs of a sample, at once or in parts. */
  readonly visit: (sample: number, outputs: readonly TensorData[]) => Promise<void>;
  /** Receives what a session has summed up: that of the whole model, or of each stage. */
  readonly onSums?: (written: WrittenSums) => void;
  /** Called with the share of the work that is done. */
  readonly onProgress: (fraction: number) => void;
}

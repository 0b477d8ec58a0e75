import { fixCacheSizes } from "./cache-sizes.ts";
import { readUsedGpuMemory } from "./read-gpu-memory.ts";
import { RuntimeProcess } from "./runtime-process.ts";
import type { ModelSignature, SummedRows } from "./session-protocol.ts";
import type { Sample, TensorData } from "./tensor-data.ts";

/** The process has one model, one feed and, where it sums up products, a model for these. */
const [key, feed, productKey] = ["model", "last", "products"];

interface OpenOptions {
  executionProvider: "cpu" | "cuda";
  threads: number;
  /** Whether the runtime may fuse, fold and rearrange the graph; it may where this is absent. */
  optimize?: boolean;
  /** Whether threads that wait stay awake, for times; they sleep where this is absent. */
  spinning?: boolean;
  /** Path that the name of a profile starts with; without it there is no profile. */
  profilePrefix?: string;
  signal: AbortSignal;
}

/**
 * A model in a process of its own, so that its peak memory is its own, a native abort ends only
 * that process, and a run can be stopped at once. Requests are sent one after the other. Errors are
 * plain ones with the runtime's message.
 */
export class ModelSession implements AsyncDisposable {
  readonly signature: ModelSignature;
  readonly #process: RuntimeProcess;
  readonly #threads: number;
  /** Memory of the GPUs that was taken before, bytes; undefined without one. */
  readonly #usedGpuBytes: number | undefined;
  #outputs: string[] = [];

  private constructor(
    process: RuntimeProcess,
    signature: ModelSignature,
    threads: number,
    usedGpuBytes: number | undefined,
  ) {
    this.#process = process;
    this.signature = signature;
    this.#threads = threads;
    this.#usedGpuBytes = usedGpuBytes;
  }

  static async open(modelPath: string, { signal, ...options }: OpenOptions): Promise<ModelSession> {
    const process = new RuntimeProcess(signal);
    try {
      const usedGpuBytes =
        options.executionProvider === "cuda" ? await startGpu(process) : undefined;
      const reply = await process.request(
        { do: "open", key, modelPath, optimize: true, ...options },
        "open",
      );
      const fixed = await fixCacheSizes(modelPath, reply.signature);
      return new ModelSession(process, fixed, options.threads, usedGpuBytes);
    } catch (error) {
      await process[Symbol.asyncDispose]();
      throw error;
    }
  }

  /**
   * Runs the model and keeps the inputs for timed runs.
   * @param summing of outputs that are summed up; `beginSums` has said how
   */
  async run(
    inputs: Sample,
    outputs: readonly string[],
    summing?: SummedSample,
  ): Promise<TensorData[]> {
    this.#outputs = [...outputs];
    await this.#process.request({ do: "feed", feed, inputs: [...inputs] }, "fed");
    const request = { do: "run", key, feed, outputs: this.#outputs, ...summing } as const;
    return (await this.#process.request(request, "outputs")).tensors;
  }

  /** Has later runs sum up rows of outputs in the process, with a model of one Gemm. */
  async beginSums({ modelPath, rows }: RowSums): Promise<void> {
    const options = { executionProvider: "cpu", threads: this.#threads, optimize: true } as const;
    await this.#process.request({ do: "open", key: productKey, modelPath, ...options }, "open");
    await this.#process.request({ do: "begin-sums", key: productKey, sums: [...rows] }, "summing");
  }

  async writeSums(): Promise<WrittenSums> {
    return (await this.#process.request({ do: "write-sums" }, "sums")).written;
  }

  /** Runs the model once more on the inputs of the last run, milliseconds. */
  async timeRun(): Promise<number> {
    const request = { do: "time", key, feed, outputs: this.#outputs, runs: 1 } as const;
    const { milliseconds } = await this.#process.request(request, "times");
    return milliseconds[0] ?? NaN;
  }

  /** What the model took at most so far: itself, its inputs and outputs, without the runtime. */
  async readMemory(): Promise<SessionMemory> {
    const { peakBytes } = await this.#process.request({ do: "measure-memory" }, "memory");
    if (this.#usedGpuBytes === undefined) return { peakBytes };
    const usedBytes = await readUsedGpuMemory();
    // Less is taken where another program has ended in between.
    if (usedBytes === undefined || usedBytes <= this.#usedGpuBytes) return { peakBytes };
    return { peakBytes, gpuBytes: usedBytes - this.#usedGpuBytes };
  }

  /** Completes the profile's file. */
  async endProfile(): Promise<void> {
    await this.#process.request({ do: "end-profile", key }, "profiled");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#process[Symbol.asyncDispose]();
  }
}

/**
 * Has the process make what each program has on a GPU whatever its models are.
 * @returns memory of the GPUs that is taken then, bytes, where it is known
 */
async function startGpu(process: RuntimeProcess): Promise<number | undefined> {
  await process.request({ do: "start-gpu" }, "started");
  return readUsedGpuMemory();
}

/** Memory that a session has taken at most, bytes. */
export interface SessionMemory {
  /** Of the machine. */
  readonly peakBytes: number;
  /** Of the GPUs: the runtime keeps what it has taken there. Absent where there is none. */
  readonly gpuBytes?: number | undefined;
}

/** What is summed up of the outputs of runs. */
export interface RowSums {
  /** Of one Gemm: `a` transposed times `b`, and `c`. */
  readonly modelPath: string;
  readonly rows: readonly SummedRows[];
}

/** What is summed up of a run's outputs. */
export interface SummedSample {
  readonly summed: string[];
  /** Which rows count; all without it. */
  readonly mask: Uint8Array | undefined;
}

/** What a session has summed up, by the file that it was written to. */
export type WrittenSums = readonly {
  readonly path: string;
  readonly rows: number;
  readonly isFinite: boolean;
}[];

/** What running a model on samples needs of its session. */
export type RunnableModel = Pick<ModelSession, "signature" | "run">;

/** The two models that an evaluation compares. */
export interface ModelPair {
  readonly original: ModelSession;
  readonly result: ModelSession;
}

import { fixCacheSizes } from "./cache-sizes.ts";
import { RuntimeProcess } from "./runtime-process.ts";
import type { ModelSignature } from "./session-protocol.ts";
import type { Sample, TensorData } from "./tensor-data.ts";

/** The process has one model and one feed. */
const [key, feed] = ["model", "last"];

interface OpenOptions {
  executionProvider: "cpu" | "cuda";
  threads: number;
  /** Whether the runtime may fuse, fold and rearrange the graph; it may where this is absent. */
  optimize?: boolean;
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
  #outputs: string[] = [];

  private constructor(process: RuntimeProcess, signature: ModelSignature) {
    this.#process = process;
    this.signature = signature;
  }

  static async open(modelPath: string, { signal, ...options }: OpenOptions): Promise<ModelSession> {
    const process = new RuntimeProcess(signal);
    try {
      const reply = await process.request(
        { do: "open", key, modelPath, optimize: true, ...options },
        "open",
      );
      return new ModelSession(process, await fixCacheSizes(modelPath, reply.signature));
    } catch (error) {
      await process[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Runs the model and keeps the inputs for timed runs. */
  async run(inputs: Sample, outputs: readonly string[]): Promise<TensorData[]> {
    this.#outputs = [...outputs];
    await this.#process.request({ do: "feed", feed, inputs: [...inputs] }, "fed");
    const request = { do: "run", key, feed, outputs: this.#outputs } as const;
    return (await this.#process.request(request, "outputs")).tensors;
  }

  /** Runs the model once more on the inputs of the last run, milliseconds. */
  async timeRun(): Promise<number> {
    const request = { do: "time", key, feed, outputs: this.#outputs, runs: 1 } as const;
    const { milliseconds } = await this.#process.request(request, "times");
    return milliseconds[0] ?? NaN;
  }

  /**
   * Largest resident memory of the process so far that the model added to it, bytes: the model, its
   * inputs and outputs, without Node and the runtime.
   */
  async readPeakMemory(): Promise<number> {
    return (await this.#process.request({ do: "measure-memory" }, "memory")).peakBytes;
  }

  /** Completes the profile's file. */
  async endProfile(): Promise<void> {
    await this.#process.request({ do: "end-profile", key }, "profiled");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#process[Symbol.asyncDispose]();
  }
}

/** What running a model on samples needs of its session. */
export type RunnableModel = Pick<ModelSession, "signature" | "run">;

/** The two models that an evaluation compares. */
export interface ModelPair {
  readonly original: ModelSession;
  readonly result: ModelSession;
}

import type { TensorData } from "../evaluate/tensor-data.ts";
import type { SpoolMemory } from "./spool-memory.ts";
import { TensorSpool } from "./tensor-spool.ts";

interface CrossingOptions {
  /** Folder for spools. */
  readonly scratchDirectory: string;
  readonly spoolMemory: SpoolMemory;
}

interface StageTensors {
  readonly names: readonly string[];
  readonly spool: TensorSpool;
}

/** Tensors between the stages of a model that are run one after the other. */
export class CrossingTensors implements AsyncDisposable {
  readonly #options: CrossingOptions;
  #stages: readonly StageTensors[] = [];

  constructor(options: CrossingOptions) {
    this.#options = options;
  }

  /** Begins a stage whose outputs of these names are used by later ones. */
  beginStage(names: readonly string[]): void {
    const { scratchDirectory: directory, spoolMemory: memory } = this.#options;
    this.#stages = [...this.#stages, { names, spool: new TensorSpool({ directory, memory }) }];
  }

  /** Whether the stage that was begun last has an output of the name for later ones. */
  takes(name: string): boolean {
    return this.#stages.at(-1)?.names.includes(name) === true;
  }

  /** Keeps outputs of the stage that was begun last, as far as later ones use them. */
  async write(sample: number, tensors: readonly TensorData[]): Promise<void> {
    const used = tensors.filter(({ name }) => this.takes(name));
    await this.#stages.at(-1)?.spool.write(sample, used);
  }

  async read(sample: number, names: readonly string[]): Promise<TensorData[]> {
    const found: TensorData[] = [];
    for (const stage of this.#stages) {
      for (const name of stage.names.filter((each) => names.includes(each))) {
        const tensor = await stage.spool.read(sample, name);
        if (tensor !== undefined) found.push(tensor);
      }
    }
    return found;
  }

  /** Deletes what no later stage uses. */
  async keepOnly(names: readonly string[]): Promise<void> {
    const isKept = (stage: StageTensors) => stage.names.some((name) => names.includes(name));
    const unused = this.#stages.filter((stage) => !isKept(stage));
    this.#stages = this.#stages.filter(isKept);
    for (const { spool } of unused) await spool[Symbol.asyncDispose]();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.keepOnly([]);
  }
}

import { workerExit } from "../../src/contract/worker-protocol/exit-codes.ts";
import type { ControlPlane } from "../../test/support/cluster/control-plane.ts";
import { type Kwok, startKwok } from "../../test/support/cluster/kwok.ts";
import { podEndStage } from "../../test/support/cluster/pod-end-stage.ts";

const gpus = 8;

/** A simulated node that can fall silent. It stops deleted pods; others play their workers. */
export class SimulatedNode implements AsyncDisposable {
  readonly name: string;
  readonly #kwok: Kwok;
  #awake = Promise.resolve();
  #wake: (() => void) | undefined;

  static async start(controlPlane: ControlPlane, name: string, logPort: number) {
    const endStages = [podEndStage({ onDeletion: true, exitCode: workerExit.cancelled })];
    const options = { name, gpusPerNode: gpus, endStages, logPort };
    return new SimulatedNode(`${name}-0`, await startKwok(controlPlane, options));
  }

  private constructor(name: string, kwok: Kwok) {
    this.name = name;
    this.#kwok = kwok;
  }

  get isSilent(): boolean {
    return this.#wake !== undefined;
  }

  /** Resolves as soon as it is not silent. */
  get awake(): Promise<void> {
    return this.#awake;
  }

  silence(): void {
    this.#kwok.pause();
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#awake = promise;
    this.#wake = resolve;
  }

  wake(): void {
    this.#kwok.resume();
    this.#wake?.();
    this.#wake = undefined;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#kwok.stop();
  }
}

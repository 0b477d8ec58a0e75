/** Loads of a pipeline's steps, in an order in which every value is computed before it is used. */
export interface StageLoads {
  /** Load of each step besides its parameters, a non-negative integer. */
  readonly stepLoads: readonly number[];
  /** Parameters of each step, by index; a stage has one copy for all of its steps that use it. */
  readonly stepParameters: readonly (readonly number[])[];
  /** Load of each parameter, a non-negative integer. */
  readonly parameterLoads: readonly number[];
}

/** Load of the steps from `start` to before `end`. */
export function computeStageLoad(loads: StageLoads, start: number, end: number): number {
  const running = new RunningLoad(loads);
  for (let step = start; step < end; step++) running.add(step);
  return running.load;
}

/** Load of a set of steps that changes a step at a time. */
export class RunningLoad {
  readonly #loads: StageLoads;
  readonly #users: Uint32Array;
  load = 0;

  constructor(loads: StageLoads) {
    this.#loads = loads;
    this.#users = new Uint32Array(loads.parameterLoads.length);
  }

  add(step: number): void {
    this.load += this.#loads.stepLoads[step] ?? 0;
    for (const parameter of this.#loads.stepParameters[step] ?? []) {
      const users = this.#users[parameter] ?? 0;
      if (users === 0) this.load += this.#loads.parameterLoads[parameter] ?? 0;
      this.#users[parameter] = users + 1;
    }
  }

  remove(step: number): void {
    this.load -= this.#loads.stepLoads[step] ?? 0;
    for (const parameter of this.#loads.stepParameters[step] ?? []) {
      const users = (this.#users[parameter] ?? 1) - 1;
      if (users === 0) this.load -= this.#loads.parameterLoads[parameter] ?? 0;
      this.#users[parameter] = users;
    }
  }
}

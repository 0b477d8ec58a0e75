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
    this.#change(step, 1);
  }

  remove(step: number): void {
    this.#change(step, -1);
  }

  /** A parameter counts from the first step that uses it until the last one is removed. */
  #change(step: number, sign: 1 | -1): void {
    const stepLoad = this.#loads.stepLoads[step];
    const parameters = this.#loads.stepParameters[step];
    if (stepLoad === undefined || parameters === undefined) throw new RangeError(`No step ${step}`);
    this.load += sign * stepLoad;
    for (const parameter of parameters) {
      const users = this.#users[parameter];
      const load = this.#loads.parameterLoads[parameter];
      if (users === undefined || load === undefined) {
        throw new RangeError(`No parameter ${parameter}`);
      }
      if (users === (sign === 1 ? 0 : 1)) this.load += sign * load;
      this.#users[parameter] = users + sign;
    }
  }
}

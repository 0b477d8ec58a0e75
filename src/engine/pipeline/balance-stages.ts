/** What a pipeline's stages are made of: steps in an order in which every value is made before it is used. */
export interface StageLoads {
  /** Load of each step besides its parameters, a non-negative integer. */
  readonly stepLoads: readonly number[];
  /** Parameters that each step uses, by index; a stage holds a parameter once, however many of its steps use it. */
  readonly stepParameters: readonly (readonly number[])[];
  /** Load of each parameter, a non-negative integer. */
  readonly parameterLoads: readonly number[];
}

export interface BalanceProblem {
  /** What is to be balanced. */
  readonly balanced: StageLoads;
  /** A second load with a limit of its own for each stage, such as the memory of a device. */
  readonly limited?: { readonly loads: StageLoads; readonly limit: number } | undefined;
  /** Cost of a cut before each step, from the second on; infinite where none may be. */
  readonly cutCosts: readonly number[];
}

/** Share by which the loads of balanced stages may miss what is possible, in favour of cheaper cuts. */
export const balanceTolerance = 0.05;

/**
 * Cuts the steps into exactly `stages` runs of consecutive steps, in three goals, each among the cuttings that meet the ones before:
 *
 * 1. The largest load of a stage is the smallest that is possible, or at most `balanceTolerance` above the mean. A greedy filling from
 *    the first step on is optimal for a given limit, because a stage's load never falls when steps are added, so that a binary search
 *    over the limit is exact (linear partition problem; Pinar and Aykanat, "Fast optimal load balancing algorithms for 1D
 *    partitioning", 2004).
 * 2. The smallest load of a stage is the largest that is possible, or at most `balanceTolerance` below it. This keeps the other stages
 *    alike where one step alone fills a stage.
 * 3. The total cost of the cuts is the least, by dynamic programming over cut positions.
 *
 * @returns index of the first step of each stage, or undefined where no cutting meets the limit.
 */
export function balanceStages(problem: BalanceProblem, stages: number): number[] | undefined {
  const smallest = findSmallestLimit(problem, stages);
  if (smallest === undefined) return undefined;
  const tolerated = Math.floor((totalLoad(problem.balanced) / stages) * (1 + balanceTolerance));
  const limit = Math.max(smallest, tolerated);
  const earliest = earliestStarts(problem, limit);
  const cutsAbove = (floor: number) =>
    findCheapestCuts(problem, { earliest, latest: latestStarts(problem.balanced, floor) }, stages);
  const floor = findLastTrue(limit, (candidate) => cutsAbove(candidate) !== undefined);
  return cutsAbove(Math.floor(floor * (1 - balanceTolerance)));
}

/** The least number of stages that meet the limited load; undefined where no number does. */
export function findFewestStages(problem: BalanceProblem): number | undefined {
  return countGreedyStages(problem, earliestStarts(problem, totalLoad(problem.balanced)));
}

/** Load of the steps from `start` to before `end`. */
export function computeStageLoad(loads: StageLoads, start: number, end: number): number {
  const running = new RunningLoad(loads);
  for (let step = start; step < end; step++) running.add(step);
  return running.load;
}

function totalLoad(loads: StageLoads): number {
  return computeStageLoad(loads, 0, loads.stepLoads.length);
}

class RunningLoad {
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

/** For each end of a stage, the earliest start with which it meets the limits; the end itself where a single step does not. */
function earliestStarts({ balanced, limited }: BalanceProblem, limit: number): Uint32Array {
  const steps = balanced.stepLoads.length;
  const starts = new Uint32Array(steps + 1);
  const running = new RunningLoad(balanced);
  const runningLimited = limited && new RunningLoad(limited.loads);
  let start = 0;
  for (let end = 1; end <= steps; end++) {
    running.add(end - 1);
    runningLimited?.add(end - 1);
    while (
      running.load > limit ||
      (limited && runningLimited && runningLimited.load > limited.limit)
    ) {
      running.remove(start);
      runningLimited?.remove(start);
      start += 1;
    }
    starts[end] = start;
  }
  return starts;
}

/** For each end of a stage, the latest start with which its load is at least `floor`; -1 where there is none. */
function latestStarts(balanced: StageLoads, floor: number): Int32Array {
  const steps = balanced.stepLoads.length;
  const starts = new Int32Array(steps + 1).fill(-1);
  const running = new RunningLoad(balanced);
  let start = 0;
  for (let end = 1; end <= steps; end++) {
    running.add(end - 1);
    while (start < end && running.load >= floor) running.remove(start++);
    starts[end] = start - 1;
  }
  return starts;
}

/** The largest integer from 0 to `high` for which a condition holds that holds for 0 and, once false, stays false. */
function findLastTrue(high: number, condition: (candidate: number) => boolean): number {
  let [low, above] = [0, high + 1];
  while (above - low > 1) {
    const middle = Math.floor((low + above) / 2);
    if (condition(middle)) low = middle;
    else above = middle;
  }
  return low;
}

function isCutAllowed({ cutCosts }: BalanceProblem, position: number): boolean {
  return Number.isFinite(cutCosts[position - 1] ?? 0);
}

/** Fills each stage as far as it goes. Positions 0 and the number of steps are the ends, which always may be. */
function countGreedyStages(problem: BalanceProblem, starts: Uint32Array): number | undefined {
  const steps = starts.length - 1;
  let stages = 0;
  for (let start = 0; start < steps; stages++) {
    let furthest = start;
    for (let end = start + 1; end <= steps && (starts[end] ?? end) <= start; end++) {
      if (end === steps || isCutAllowed(problem, end)) furthest = end;
    }
    if (furthest === start) return undefined;
    start = furthest;
  }
  return stages;
}

function findSmallestLimit(problem: BalanceProblem, stages: number): number | undefined {
  const cuts = problem.cutCosts.filter(Number.isFinite).length;
  const isFeasible = (limit: number) => {
    const count = countGreedyStages(problem, earliestStarts(problem, limit));
    return count !== undefined && count <= stages;
  };
  const high = totalLoad(problem.balanced);
  if (cuts < stages - 1 || !isFeasible(high)) return undefined;
  return high - findLastTrue(high, (below) => isFeasible(high - below));
}

/** Which starts a stage may have for each of its ends: from the earliest to the latest. Neither falls from one end to the next. */
interface StartWindows {
  readonly earliest: Uint32Array;
  readonly latest: Int32Array;
}

/** Gives the cutting with the least total cost, stage by stage from the first: O(stages × steps). */
function findCheapestCuts(
  { cutCosts }: BalanceProblem,
  windows: StartWindows,
  stages: number,
): number[] | undefined {
  const steps = windows.earliest.length - 1;
  let best = new Float64Array(steps + 1).fill(Infinity);
  best[0] = 0;
  const choices: Int32Array[] = [];
  for (let stage = 0; stage < stages; stage++) {
    const costs = best.map(
      (cost, position) => cost + (position === 0 ? 0 : (cutCosts[position - 1] ?? 0)),
    );
    const { next, choice } = cheapestStarts(costs, windows);
    best = next;
    choices.push(choice);
  }
  if (best[steps] === Infinity) return undefined;
  let end = steps;
  return choices
    .toReversed()
    .map((choice) => (end = choice[end] ?? 0))
    .toReversed();
}

/** For each end, the start in its window with the least cost; the window slides, so that a monotone queue keeps its minimum. */
function cheapestStarts(costs: Float64Array, { earliest, latest }: StartWindows) {
  const next = new Float64Array(costs.length).fill(Infinity);
  const choice = new Int32Array(costs.length).fill(-1);
  const queue = new Int32Array(costs.length);
  const queuedCost = (place: number) => costs[queue[place] ?? 0] ?? Infinity;
  let [head, tail, candidate] = [0, 0, 0];
  for (let end = 1; end < costs.length; end++) {
    for (; candidate <= (latest[end] ?? -1); candidate++) {
      while (tail > head && queuedCost(tail - 1) > (costs[candidate] ?? Infinity)) tail -= 1;
      queue[tail++] = candidate;
    }
    while (head < tail && (queue[head] ?? 0) < (earliest[end] ?? end)) head += 1;
    if (head === tail) continue;
    next[end] = queuedCost(head);
    choice[end] = queue[head] ?? 0;
  }
  return { next, choice };
}

import { at } from "../onnx/at.ts";
import { computeStageLoad, RunningLoad, type StageLoads } from "./stage-loads.ts";

export interface BalanceProblem {
  /** The loads to balance. */
  readonly balanced: StageLoads;
  /** A second load with a limit of its own for each stage, such as the memory of a device. */
  readonly limited?: { readonly loads: StageLoads; readonly limit: number } | undefined;
  /** Cost of a cut before each step, from the second on; infinite where none is allowed. */
  readonly cutCosts: readonly number[];
}

/** How far stages may miss the best balance, as a fraction, in favour of cheaper cuts. */
const balanceTolerance = 0.05;

/**
 * Cuts the steps into exactly `stages` runs of consecutive steps. It has three goals, each among
 * the cuttings that meet the ones before:
 *
 * 1. The largest load of a stage is the smallest that is possible, or at most `balanceTolerance`
 *    above the mean. Filling stages greedily from the first step on is optimal for a given limit,
 *    because a stage's load never falls when steps are added. So a binary search over the limit is
 *    exact (linear partition problem; Pinar and Aykanat, "Fast optimal load balancing algorithms
 *    for 1D partitioning", 2004).
 * 2. The smallest load of a stage is the largest that is possible, or at most `balanceTolerance`
 *    below it. This balances the other stages where one step alone fills a stage.
 * 3. The total cost of the cuts is the least, by dynamic programming over cut positions.
 *
 * @returns index of the first step of each stage, or undefined where no cutting meets the limit
 */
export function balanceStages(problem: BalanceProblem, stages: number): number[] | undefined {
  const smallest = findSmallestLimit(problem, stages);
  if (smallest === undefined) return undefined;
  const tolerated = Math.floor((totalLoad(problem.balanced) / stages) * (1 + balanceTolerance));
  const limit = Math.max(smallest, tolerated);
  const earliest = earliestStarts(problem, limit);
  const cutsAbove = (floor: number) => {
    const windows = { earliest, latest: latestStarts(problem.balanced, floor) };
    return findCheapestCuts(problem.cutCosts, windows, stages);
  };
  const floor = findLastTrue(limit, (candidate) => cutsAbove(candidate) !== undefined);
  return cutsAbove(Math.floor(floor * (1 - balanceTolerance)));
}

/** The least number of stages that meet the limited load; undefined where no number does. */
export function findFewestStages(problem: BalanceProblem): number | undefined {
  return countGreedyStages(problem, earliestStarts(problem, totalLoad(problem.balanced)));
}

function totalLoad(loads: StageLoads): number {
  return computeStageLoad(loads, 0, loads.stepLoads.length);
}

/** For each end of a stage, the earliest start within the limits; the end itself where none is. */
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

/** For each end of a stage, the latest start for a load of at least `floor`; -1 for none. */
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

/** The largest integer up to `high` that meets a condition, which 0 meets and no larger failure. */
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
  return Number.isFinite(at(cutCosts, position - 1));
}

/** Fills each stage as far as it goes; both ends of the steps are always allowed as cuts. */
function countGreedyStages(problem: BalanceProblem, starts: Uint32Array): number | undefined {
  const steps = starts.length - 1;
  let stages = 0;
  for (let start = 0; start < steps; stages++) {
    let furthest = start;
    for (let end = start + 1; end <= steps && at(starts, end) <= start; end++) {
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

/** For each end of a stage, the earliest and the latest start. Neither falls from end to end. */
interface StartWindows {
  readonly earliest: Uint32Array;
  readonly latest: Int32Array;
}

/** Finds the stages' starts with the least total cost, stage by stage: O(stages × steps). */
function findCheapestCuts(
  cutCosts: readonly number[],
  windows: StartWindows,
  stages: number,
): number[] | undefined {
  const steps = windows.earliest.length - 1;
  let best = new Float64Array(steps + 1).fill(Infinity);
  best[0] = 0;
  const choices: Int32Array[] = [];
  const isEnd = (position: number) => position === 0 || position === steps;
  const cutCost = (position: number) => (isEnd(position) ? 0 : at(cutCosts, position - 1));
  for (let stage = 0; stage < stages; stage++) {
    const costs = best.map((cost, position) => cost + cutCost(position));
    const { next, choice } = cheapestStarts(costs, windows);
    best = next;
    choices.push(choice);
  }
  return best[steps] === Infinity ? undefined : traceStarts(choices, steps);
}

/** Follows the chosen starts back from the last end. */
function traceStarts(choices: readonly Int32Array[], steps: number): number[] {
  let end = steps;
  return choices
    .toReversed()
    .map((choice) => (end = at(choice, end)))
    .toReversed();
}

/**
 * For each end, the cheapest start in its window, from a monotone queue as the window slides.
 * Positions that no stage before ends at are passed over, which are most of them.
 */
function cheapestStarts(costs: Float64Array, { earliest, latest }: StartWindows) {
  const next = new Float64Array(costs.length).fill(Infinity);
  const choice = new Int32Array(costs.length).fill(-1);
  const first = costs.findIndex(Number.isFinite);
  if (first === -1) return { next, choice };
  const queue = new Int32Array(costs.length);
  const queuedCost = (place: number) => at(costs, at(queue, place));
  let [head, tail, candidate] = [0, 0, first];
  for (let end = first + 1; end < costs.length; end++) {
    for (; candidate <= at(latest, end); candidate++) {
      const cost = at(costs, candidate);
      while (tail > head && queuedCost(tail - 1) > cost) tail -= 1;
      if (cost < Infinity) queue[tail++] = candidate;
    }
    while (head < tail && at(queue, head) < at(earliest, end)) head += 1;
    if (head === tail) continue;
    next[end] = queuedCost(head);
    choice[end] = at(queue, head);
  }
  return { next, choice };
}

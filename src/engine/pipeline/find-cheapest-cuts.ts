/** For each end of a stage, the earliest and the latest start. Neither falls from end to end. */
interface StartWindows {
  readonly earliest: Uint32Array;
  readonly latest: Int32Array;
}

/** Finds the stages' starts with the least total cost, stage by stage: O(stages × steps). */
export function findCheapestCuts(
  cutCosts: readonly number[],
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
  return best[steps] === Infinity ? undefined : traceStarts(choices, steps);
}

/** Follows the chosen starts back from the last end. */
function traceStarts(choices: readonly Int32Array[], steps: number): number[] {
  let end = steps;
  return choices
    .toReversed()
    .map((choice) => (end = choice[end] ?? 0))
    .toReversed();
}

/** For each end, the cheapest start in its window, from a monotone queue as the window slides. */
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

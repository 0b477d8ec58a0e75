import type { WeightTask } from "./weight-task.ts";

/**
 * Divides tasks into shares whose largest is small: the largest task goes first, each to the share that has least. The same
 * tasks are always divided alike; each share keeps their order.
 */
export function divideTasks(tasks: readonly WeightTask[], count: number): WeightTask[][] {
  const shares = Array.from({ length: count }, () => ({ bytes: 0, tasks: new Set<WeightTask>() }));
  for (const task of tasks.toSorted((a, b) => b.sourceBytes - a.sourceBytes)) {
    const least = shares.reduce((lightest, share) => (share.bytes < lightest.bytes ? share : lightest));
    least.bytes += task.sourceBytes;
    least.tasks.add(task);
  }
  return shares.map((share) => tasks.filter((task) => share.tasks.has(task)));
}

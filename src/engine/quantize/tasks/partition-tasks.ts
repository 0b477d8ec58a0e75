import type { WeightTask } from "./weight-task.ts";

/**
 * Divides tasks into that many partitions whose largest is small: the largest task goes first, each
 * to the partition with the fewest bytes. The same tasks always give the same partitions; each
 * keeps their order.
 */
export function partitionTasks(tasks: readonly WeightTask[], count: number): WeightTask[][] {
  const partitions = Array.from({ length: count }, () => ({
    bytes: 0,
    tasks: new Set<WeightTask>(),
  }));
  for (const task of tasks.toSorted((a, b) => b.sourceBytes - a.sourceBytes)) {
    const least = partitions.reduce((lightest, partition) =>
      partition.bytes < lightest.bytes ? partition : lightest,
    );
    least.bytes += task.sourceBytes;
    least.tasks.add(task);
  }
  return partitions.map((partition) => tasks.filter((task) => partition.tasks.has(task)));
}

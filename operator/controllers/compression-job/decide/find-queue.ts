import type { CompressionJob } from "../../../../src/contract/custom-resources/compression-job.ts";
import { resourceLabels } from "../../../../src/contract/custom-resources/resource-labels.ts";
import type { ConfiguredTarget } from "../../../../src/contract/custom-resources/target-pod.ts";

export type Queue = NonNullable<ConfiguredTarget["queue"]>;

/**
 * Kueue's queue that admits the job's worker Jobs, which are created suspended: labels of the
 * resource come before what its target says.
 */
export function findQueue(
  { metadata: { labels = {} } }: { readonly metadata: Pick<CompressionJob["metadata"], "labels"> },
  target: ConfiguredTarget,
): Queue | undefined {
  const name = labels[resourceLabels.queue] ?? target.queue?.name;
  if (name === undefined) return undefined;
  const priorityClass = labels[resourceLabels.queuePriority] ?? target.queue?.priorityClass;
  return priorityClass === undefined ? { name } : { name, priorityClass };
}

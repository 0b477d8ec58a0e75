import { resourceLabels } from "../../../src/contract/custom-resources.ts";
import type { KubernetesObject, ObjectMeta, Stored } from "../../../src/kubernetes/resources.ts";

const neededLabels = [resourceLabels.jobId, resourceLabels.step] as const;

/** What a cache keeps of the metadata of a child: whose it is, and since when. */
export function trimMetadata({ metadata }: Stored<KubernetesObject>): Stored<KubernetesObject>["metadata"] {
  const { name, uid, resourceVersion, creationTimestamp, deletionTimestamp, labels = {} } = metadata;
  return {
    name,
    uid,
    resourceVersion,
    creationTimestamp,
    ...(deletionTimestamp !== undefined && { deletionTimestamp }),
    labels: Object.fromEntries(
      neededLabels.flatMap((label) => (labels[label] === undefined ? [] : [[label, labels[label]]])),
    ),
    ...ownersOf(metadata),
  };
}

function ownersOf({ ownerReferences = [] }: ObjectMeta): Pick<ObjectMeta, "ownerReferences"> {
  const controllers = ownerReferences.filter(({ controller }) => controller);
  return controllers.length === 0 ? {} : { ownerReferences: controllers };
}

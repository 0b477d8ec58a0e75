import { batchRequest } from "../../contract/jobs/batch.ts";
import { resourceLabels } from "../../contract/custom-resources/resource-labels.ts";
import type { BatchObject } from "../../resources/custom-resources.ts";

/** The resource of a batch that was submitted over REST with the given request. */
export function batchResource(id: string, request: unknown, resourceTtlSeconds: number) {
  const controls = { cancel: false, suspend: false, ttlSecondsAfterFinished: resourceTtlSeconds };
  const labels = { [resourceLabels.batchId]: id };
  return {
    metadata: { name: id, labels },
    spec: { ...batchRequest.parse(request), ...controls },
  } satisfies BatchObject;
}

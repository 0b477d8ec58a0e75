import { apiVersion } from "../../../../src/contract/custom-resources/api-group.ts";
import type { CompressionJob } from "../../../../src/contract/custom-resources/compression-job.ts";
import type { CompressionJobObject } from "../../../../src/resources/custom-resources.ts";
import type { Stored } from "../../../../src/kubernetes/resources.ts";

/** A stored object with the defaults that the API server leaves out. */
export function toCompressionJob(object: Stored<CompressionJobObject>): CompressionJob {
  const { metadata, spec, status = { status: "Pending" } } = object;
  const { namespace = "", generation = 0 } = metadata;
  return {
    apiVersion,
    kind: "CompressionJob",
    metadata: { ...metadata, namespace, generation },
    spec,
    status,
  };
}

import type { CompressionJobObject } from "../../../../src/resources/custom-resources.ts";
import type { Stored } from "../../../../src/kubernetes/resources.ts";

/** What a cache keeps of a CompressionJob: all but the result, on which no decision depends. */
export function trimCompressionJob({
  status,
  ...object
}: Stored<CompressionJobObject>): Stored<CompressionJobObject> {
  if (status === undefined) return object;
  const { telemetry: _, artifacts: __, ...trimmedStatus } = status;
  return { ...object, status: trimmedStatus };
}

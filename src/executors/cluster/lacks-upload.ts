import type { ErrorCode } from "../../contract/errors.ts";
import type { CompressionJobObject } from "../../resources/custom-resources.ts";
import { resourceStatus } from "./desired-status.ts";

/** Whether a resource has failed since its project does not have the model, or the data. */
export function lacksUpload(resource: CompressionJobObject): boolean {
  const { status, statusReason } = resourceStatus(resource);
  return status === "Failed" && statusReason === ("model_not_found" satisfies ErrorCode);
}

import { apiVersion } from "../contract/custom-resources/api-group.ts";
import type {
  BatchResourceStatus,
  BatchSpec,
} from "../contract/custom-resources/batch-resource.ts";
import type {
  CompressionJobSpec,
  CompressionJobStatus,
} from "../contract/custom-resources/compression-job.ts";
import { type KubernetesObject, resourceType } from "../kubernetes/resources.ts";

interface CustomObject<Spec, Status> extends KubernetesObject {
  spec: Spec;
  /** Absent when an object is created: the API server sets the default status, Pending. */
  status?: Status;
}

export type CompressionJobObject = CustomObject<CompressionJobSpec, CompressionJobStatus>;
export type BatchObject = CustomObject<BatchSpec, BatchResourceStatus>;

export const compressionJobs = resourceType<CompressionJobObject>({
  apiVersion,
  kind: "CompressionJob",
  plural: "compressionjobs",
  namespaced: true,
});

export const batches = resourceType<BatchObject>({
  apiVersion,
  kind: "Batch",
  plural: "batches",
  namespaced: true,
});

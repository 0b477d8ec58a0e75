import {
  type BatchSpec,
  batchSpec,
} from "../../../src/contract/custom-resources/batch-resource.ts";
import type { BatchObject } from "../../../src/resources/custom-resources.ts";
import type { Stored } from "../../../src/kubernetes/resources.ts";

type SpecFields = Partial<Omit<BatchSpec, "models">> & { readonly models?: number };

/** A spec as the API server has it, of so many models for two targets. */
export function makeSpec({ models = 2, ...fields }: SpecFields = {}): BatchSpec {
  return batchSpec.parse({
    models: Array.from({ length: models }, (_, i) => ({
      source: `https://models.test/${i}.onnx`,
      name: `model-${i}`,
    })),
    targets: ["cpu", "cpu-int8"],
    ...fields,
  });
}

/** A batch as the API server answers it before anybody has written its status. */
export function makeBatch(fields: SpecFields = {}): Stored<BatchObject> {
  return {
    metadata: {
      name: "nightly",
      uid: "5a0ad6ef-ee3a-46c8-995a-f66249dc1e31",
      resourceVersion: "1",
      generation: 1,
      creationTimestamp: "2026-03-01T00:00:00Z",
    },
    spec: makeSpec(fields),
    status: { status: "Pending" },
  };
}

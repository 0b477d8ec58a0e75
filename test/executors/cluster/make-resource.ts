import type { CompressionJobStatus } from "../../../src/contract/custom-resources/compression-job.ts";
import type { CompressionJobObject } from "../../../src/resources/custom-resources.ts";
import type { Stored } from "../../../src/kubernetes/resources.ts";
import { makeJob } from "../../support/make-job.ts";

/** The resource of the job that `makeJob` makes. */
export function makeResource(status?: CompressionJobStatus): Stored<CompressionJobObject> {
  const { id, createdAt } = makeJob();
  const version = { uid: "uid", resourceVersion: "1", generation: 1 };
  return {
    metadata: { name: id, creationTimestamp: createdAt, ...version },
    spec: {
      kind: "compress",
      model: { source: "https://models.example/detector.onnx" },
      target: "cpu",
      dryRun: false,
      cancel: false,
      suspend: false,
    },
    ...(status && { status }),
  };
}

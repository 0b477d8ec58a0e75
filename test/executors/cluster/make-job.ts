import type { CompressionJobStatus } from "../../../src/contract/custom-resources/compression-job.ts";
import { type Job, job as jobSchema } from "../../../src/contract/jobs/job.ts";
import { defaultRecipe } from "../../../src/contract/jobs/resolve-recipe.ts";
import type { CompressionJobObject } from "../../../src/resources/custom-resources.ts";
import type { Stored } from "../../../src/kubernetes/resources.ts";

const at = "2026-01-01T00:00:00.000Z";
const id = "job-01kdvfmb000123456789abcdef";

/** A job's record, by default one that waits. */
export function makeJob(fields: Partial<Job> = {}): Job {
  return jobSchema.parse({
    id,
    kind: "compress",
    name: "detector for cpu",
    status: "Pending",
    statusReason: "queued",
    statusMessage: "Waiting for a worker",
    batchId: null,
    model: {
      source: "https://models.example/detector.onnx",
      name: "detector.onnx",
      bytes: null,
      actualSha256: null,
    },
    target: "cpu",
    recipe: defaultRecipe,
    gateLimits: {},
    dryRun: false,
    labels: {},
    createdAt: at,
    updatedAt: at,
    startedAt: null,
    finishedAt: null,
    transitions: [{ status: "Pending", at, reason: "queued", message: "Waiting for a worker" }],
    telemetry: { progress: { fraction: 0 }, warnings: [] },
    artifacts: [],
    gates: [],
    error: null,
    ...fields,
  });
}

/** The resource of that job. */
export function makeResource(status?: CompressionJobStatus): Stored<CompressionJobObject> {
  return {
    metadata: { name: id, uid: "uid", resourceVersion: "1", creationTimestamp: at, generation: 1 },
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

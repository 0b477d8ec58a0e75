import { isDeepStrictEqual } from "node:util";
import type { CompressionJobSpec } from "../../contract/custom-resources/compression-job.ts";
import {
  recordFinalizer,
  resourceLabels,
} from "../../contract/custom-resources/resource-labels.ts";
import { batchRequest } from "../../contract/batches/batch.ts";
import type { Job } from "../../contract/jobs/job.ts";
import type { KubernetesClient } from "../../kubernetes/kubernetes-client.ts";
import { isAlreadyExists, isForbidden } from "../../kubernetes/kubernetes-error.ts";
import { findNamespacePhase } from "../../kubernetes/namespaces.ts";
import type { KubernetesObject, ResourceType, Stored } from "../../kubernetes/resources.ts";
import type { BatchObject, CompressionJobObject } from "../../resources/custom-resources.ts";

/**
 * The resource of a job that was started over REST. It has the effective recipe, which does not
 * change with the target.
 */
export function jobResource(job: Job, resourceTtlSeconds: number) {
  const { source, sha256, name } = job.model;
  const spec: CompressionJobSpec = {
    kind: job.kind,
    name: job.name,
    model: { source, name, sha256 },
    target: job.target,
    recipe: job.recipe,
    gates: job.gateLimits,
    dryRun: job.dryRun,
    deadlineSeconds: job.deadlineSeconds,
    labels: job.labels,
    cancel: false,
    suspend: false,
    ttlSecondsAfterFinished: resourceTtlSeconds,
  };
  const labels = { [resourceLabels.jobId]: job.id };
  return {
    metadata: { name: job.id, labels, finalizers: [recordFinalizer] },
    spec,
  } satisfies CompressionJobObject;
}

/** The resource of a batch that was submitted over REST with the given request. */
export function batchResource(id: string, request: unknown, resourceTtlSeconds: number) {
  const controls = { cancel: false, suspend: false, ttlSecondsAfterFinished: resourceTtlSeconds };
  const labels = { [resourceLabels.batchId]: id };
  return {
    metadata: { name: id, labels },
    spec: { ...batchRequest.parse(request), ...controls },
  } satisfies BatchObject;
}

/** Creates the object, or returns the one that an earlier attempt created without a response. */
export async function createOrGet<T extends KubernetesObject>(
  client: KubernetesClient,
  type: ResourceType<T>,
  object: T & { readonly metadata: { readonly name: string } },
): Promise<Stored<T>> {
  try {
    return await client.create(type, object);
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
    return client.get(type, object.metadata.name);
  }
}

/**
 * The JSON merge patch that turns `before` into `after`: null deletes a field, arrays are replaced
 * whole. Undefined without a difference.
 */
export function mergePatch(
  before: object,
  after: object,
): Readonly<Record<string, unknown>> | undefined {
  const old = new Map<string, unknown>(Object.entries(before));
  const wanted = new Map<string, unknown>(
    Object.entries(after).filter(([, value]) => value !== undefined),
  );
  const patch: Record<string, unknown> = {};
  for (const name of old.keys()) {
    if (!wanted.has(name) && old.get(name) !== undefined) patch[name] = null;
  }
  for (const [name, value] of wanted) {
    const known = old.get(name);
    if (isPlainObject(known) && isPlainObject(value)) {
      const inner = mergePatch(known, value);
      if (inner !== undefined) patch[name] = inner;
    } else if (!isDeepStrictEqual(known, value)) patch[name] = value;
  }
  return Object.keys(patch).length === 0 ? undefined : patch;
}

function isPlainObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Undefined where the client's namespace is gone, and with it the right to read. */
export async function readUnlessGone<T>(
  client: KubernetesClient,
  read: Promise<T>,
): Promise<T | undefined> {
  try {
    return await read;
  } catch (error) {
    if (isForbidden(error) && (await findNamespacePhase(client)) === "gone") return undefined;
    throw error;
  }
}

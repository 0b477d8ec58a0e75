import { createHash } from "node:crypto";
import type { CompressionJob } from "../../../../src/contract/custom-resources/compression-job.ts";
import type { JobCosts } from "../../../../src/contract/jobs/telemetry.ts";
import { setBounded } from "../../../../src/limits/bounded-map.ts";

type Resource = Pick<CompressionJob, "metadata" | "spec" | "status">;

/** The oldest are forgotten first. */
const maxKnown = 20_000;

/** What jobs take, of those that have ended: the newest of each model, target and recipe. */
export class KnownCosts {
  readonly #known = new Map<string, { readonly createdAt: string; readonly costs: JobCosts }>();

  /** Measured costs come before the forecast, which is all that a dry run has. */
  note(resource: Resource): void {
    const { usage, forecast } = resource.status.report?.telemetry ?? {};
    const costs = usage ?? forecast;
    if (costs === undefined) return;
    const key = workKey(resource);
    const createdAt = resource.metadata.creationTimestamp;
    if ((this.#known.get(key)?.createdAt ?? "") > createdAt) return;
    setBounded(this.#known, key, { createdAt, costs }, maxKnown);
  }

  find(resource: Pick<Resource, "metadata" | "spec">): JobCosts | undefined {
    return this.#known.get(workKey(resource))?.costs;
  }
}

/** A model with a name is the same one wherever it comes from. */
function workKey({ metadata, spec }: Pick<Resource, "metadata" | "spec">): string {
  const { kind, model, target, recipe } = spec;
  const work = [metadata.namespace, kind, model.name ?? model.source, target, recipe];
  return createHash("sha256").update(JSON.stringify(work)).digest("base64");
}

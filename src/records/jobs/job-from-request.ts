import type { JobRequest } from "../../contract/jobs/job.ts";
import type { ModelReference } from "../../contract/models/model.ts";
import { findUploadHash, isFolderSource } from "../../contract/models/model-source.ts";
import type { JobKind } from "../../contract/jobs/status.ts";
import type { NewJob } from "./insert-jobs.ts";

/** What all jobs of one request have in common. */
export interface JobFields extends Pick<
  JobRequest,
  "gates" | "labels" | "dryRun" | "deadlineSeconds"
> {
  readonly kind: JobKind;
  readonly name?: string | undefined;
}

/** A job of a request, for one of its models and one of its targets. */
export function jobFromRequest(
  request: JobFields,
  reference: ModelReference,
  resolved: Pick<NewJob, "target" | "recipe">,
): NewJob {
  const { kind, name, gates = {}, labels = {}, dryRun, deadlineSeconds } = request;
  const model = { ...reference, name: reference.name ?? modelNameFromSource(reference.source) };
  return {
    ...resolved,
    kind,
    name: name ?? `${model.name} for ${resolved.target.name}`,
    model,
    gateLimits: gates,
    dryRun,
    deadlineSeconds,
    labels,
  };
}

/** The file's name, or the start of the upload's hash. */
function modelNameFromSource(source: string): string {
  const name =
    findUploadHash(source)?.slice(0, 12) ??
    new URL(source).pathname.split("/").findLast((part) => part !== "");
  // A repository without a file ends with its revision.
  const own = isFolderSource(source) ? name?.replace(/@.*$/, "") : name;
  const safe = (own ?? "").replaceAll(/[^A-Za-z0-9._-]+/g, "-").replace(/^[^A-Za-z0-9]+/, "");
  return safe.slice(0, 100) || "model";
}

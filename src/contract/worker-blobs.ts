import { findUploadHash } from "./model-source.ts";
import type { Assignment, WorkerEvent } from "./worker.ts";

/** Hashes of the blobs that an assignment names: all that its worker reads, besides its own. */
export function assignedBlobs({
  model,
  recipe,
  part,
  baseline,
}: Pick<Assignment, "model" | "recipe" | "part" | "baseline">): ReadonlySet<string> {
  const sources = [model.source, recipe.evaluation.data ?? ""];
  const uploads = sources.flatMap((source) => findUploadHash(source) ?? []);
  const outlines = part?.outline ? [part.outline] : [];
  const models = [...(model.files ?? []), ...(baseline ?? [])];
  const files = [...models, ...(part?.shares ?? []), ...outlines];
  return new Set([...uploads, ...files.map(({ sha256 }) => sha256)]);
}

/** Hash of the blob that an event reports as stored; undefined for other events. */
export function reportedBlob(event: WorkerEvent): string | undefined {
  if (event.type === "artifact") return event.artifact.sha256;
  if (event.type === "outline") return event.outline.sha256;
  return event.type === "share" ? event.share.sha256 : undefined;
}

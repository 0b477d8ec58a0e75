import type { Assignment, WorkerEvent } from "./worker.ts";

const uploadScheme = "upload:sha256:";

/** Hashes of the blobs that an assignment names: all that its worker reads, besides its own. */
export function assignedBlobs({
  model,
  recipe,
  part,
  baseline,
}: Pick<Assignment, "model" | "recipe" | "part" | "baseline">): ReadonlySet<string> {
  const uploads = [model.source, recipe.evaluation.data ?? ""]
    .filter((source) => source.startsWith(uploadScheme))
    .map((source) => source.slice(uploadScheme.length));
  const outlines = part?.outline ? [part.outline] : [];
  const files = [...(baseline ?? []), ...(part?.shares ?? []), ...outlines];
  return new Set([...uploads, ...files.map(({ sha256 }) => sha256)]);
}

/** Hash of the blob that an event reports as stored; undefined for other events. */
export function reportedBlob(event: WorkerEvent): string | undefined {
  if (event.type === "artifact") return event.artifact.sha256;
  if (event.type === "outline") return event.outline.sha256;
  return event.type === "share" ? event.share.sha256 : undefined;
}

import { z } from "zod";
import { listDataSources } from "../jobs/recipe-data.ts";
import type { Assignment, WorkerEvent } from "./messages.ts";
import { findUploadHash, modelSource } from "../models/model-source.ts";

/** Body of `POST /worker/v1/jobs/{id}/blobs/{sha256}/upload`: a worker asks how to send a file. */
export const uploadQuestion = z.object({ bytes: z.int().min(0) });

/** How a worker sends a file. */
export const uploadAnswer = z.discriminatedUnion("to", [
  z.object({ to: z.literal("nobody") }).describe("The job has stored it before."),
  z.object({ to: z.literal("service") }).describe("By PUT to the blob's address."),
  z
    .object({
      to: z.literal("storage"),
      url: z.url(),
      headers: z.record(z.string(), z.string()),
    })
    .describe("By PUT to the address, and then POST to `stored` below the blob's address."),
]);
export type UploadAnswer = z.infer<typeof uploadAnswer>;

/**
 * Body of `POST /worker/v1/jobs/{id}/sources`: a worker asks where a file of its job is. The same to
 * `source`, without an s, asks for its content: a worker without a network does.
 */
export const sourceQuestion = z.object({ source: modelSource });

/** Where a worker reads a file now. */
export const locatedSource = z.object({
  url: z.url(),
  headers: z.record(z.string(), z.string()).describe("Only for the address's own origin."),
  isTrusted: z
    .boolean()
    .describe("Whether the administrator named the origin, which may be private then."),
});
export type LocatedSource = z.infer<typeof locatedSource>;

/** Hashes of the blobs that an assignment names: all that its worker reads, besides its own. */
export function assignedBlobs({
  model,
  recipe,
  part,
  baseline,
  comparison,
}: Pick<Assignment, "model" | "recipe" | "part" | "baseline" | "comparison">): ReadonlySet<string> {
  const sources = [model.source, ...listDataSources(recipe)];
  const uploads = sources.flatMap((source) => findUploadHash(source) ?? []);
  const outlines = part?.outline ? [part.outline] : [];
  const models = [...(model.files ?? []), ...(baseline ?? [])];
  const files = [...models, ...(part?.shares ?? []), ...outlines];
  const descriptions = comparison?.description ? [comparison.description] : [];
  return new Set([...uploads, ...files.map(({ sha256 }) => sha256), ...descriptions]);
}

/** The blob that an event reports as stored; undefined for other events. */
export function reportedBlob(
  event: WorkerEvent,
): { readonly sha256: string; readonly bytes: number } | undefined {
  if (event.type === "artifact") return event.artifact;
  if (event.type === "outline") return event.outline;
  return event.type === "share" ? event.share : undefined;
}

import type { Upload } from "../blob-store.ts";
import { partialUploadName, projectPrefix } from "../partial-upload-path.ts";
import { selectExcessUploads } from "../select-excess-uploads.ts";
import { abortUploadsBefore } from "./assemble-object.ts";
import { listObjects, removeObjects } from "./objects.ts";
import type { S3Client } from "./s3-client.ts";

/** Where content is until it is complete: a folder for each upload. */
const incoming = "incoming/";
/** What nobody has added to for so long has no sender. */
const abandonedAfterMs = 24 * 60 * 60 * 1000;

export function incomingFolder(name: string): string {
  return `${incoming}${name}/`;
}

interface IncomingUpload {
  readonly name: string;
  readonly keys: readonly string[];
  readonly bytes: number;
  /** When its last part was stored. */
  readonly modifiedAt: Date;
}

async function listUploads(client: S3Client, prefix = ""): Promise<IncomingUpload[]> {
  const objects = await Array.fromAsync(listObjects(client, `${incoming}${prefix}`));
  const folders = Map.groupBy(objects, ({ key }) => key.slice(0, key.lastIndexOf("/")));
  return [...folders].map(([folder, parts]) => ({
    name: folder.slice(incoming.length),
    keys: parts.map(({ key }) => key),
    bytes: parts.reduce((sum, part) => sum + part.bytes, 0),
    modifiedAt: new Date(Math.max(...parts.map((part) => part.modifiedAt.getTime()))),
  }));
}

/** Removes what was sent of content that nobody completed within a day. */
export async function removeAbandonedUploads(client: S3Client, now: Date): Promise<void> {
  const oldest = new Date(now.getTime() - abandonedAfterMs);
  const uploads = await listUploads(client);
  const abandoned = uploads.filter(({ modifiedAt }) => modifiedAt < oldest);
  await removeObjects(
    client,
    abandoned.flatMap(({ keys }) => keys),
  );
  await abortUploadsBefore(client, oldest);
}

/** A project's uploads that were interrupted and that nobody sends at present. */
export async function listKeptUploads(
  client: S3Client,
  project: string,
  receiving: Pick<ReadonlySet<string>, "has">,
): Promise<IncomingUpload[]> {
  const uploads = await listUploads(client, projectPrefix(project));
  return uploads.filter(({ name }) => !receiving.has(name));
}

/**
 * Removes interrupted uploads of a project where there is too much of them after one more was, but
 * none that is being received.
 * @returns their names
 */
export async function removeExcessUploads(
  client: S3Client,
  upload: Upload,
  receiving: ReadonlyMap<string, unknown>,
): Promise<string[]> {
  const others = new Set(receiving.keys());
  others.delete(partialUploadName(upload));
  const excess = selectExcessUploads(await listKeptUploads(client, upload.project, others));
  await removeObjects(
    client,
    excess.flatMap(({ keys }) => keys),
  );
  return excess.map(({ name }) => name);
}

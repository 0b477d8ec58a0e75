import { text } from "node:stream/consumers";
import { jsonValue } from "../contract/text/json-value.ts";
import { limits } from "../contract/limits.ts";
import { manifest, type ModelFile, type StoredUpload } from "../contract/models/manifest.ts";
import type { BlobStore } from "./blob-store.ts";

type ReadableBlobs = Pick<BlobStore, "find" | "read">;

const manifestText = jsonValue.pipe(manifest);
/** Each is a request where blobs lie in a bucket, and a manifest names up to 1,000 files. */
const findsAtOnce = 16;

/** A stored file, with those that it names as a manifest; undefined where it is not stored. */
export async function findStoredUpload(
  blobs: ReadableBlobs,
  sha256: string,
): Promise<StoredUpload | undefined> {
  const found = await blobs.find(sha256);
  if (found === undefined) return undefined;
  const { bytes } = found;
  const isText = bytes <= limits.manifestBytes;
  return { sha256, bytes, files: isText ? await listNamedFiles(blobs, sha256) : [] };
}

/** None of a manifest whose files are not all stored. */
async function listNamedFiles(blobs: ReadableBlobs, sha256: string): Promise<ModelFile[]> {
  const { data } = manifestText.safeParse(await text(blobs.read(sha256)));
  const named = data?.files ?? [];
  const files: ModelFile[] = [];
  for (let start = 0; start < named.length; start += findsAtOnce) {
    const group = named.slice(start, start + findsAtOnce);
    const found = await Promise.all(group.map((file) => blobs.find(file.sha256)));
    const stored = group.flatMap((file, i) => (found[i] ? [{ ...file, ...found[i] }] : []));
    if (stored.length < group.length) return [];
    files.push(...stored);
  }
  return files;
}

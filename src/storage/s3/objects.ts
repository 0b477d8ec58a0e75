import { createHash } from "node:crypto";
import { encodeKey, isMissing, type S3Client } from "./s3-client.ts";
import { readAnswerHeader } from "../request-source.ts";
import { readXmlElements, readXmlText } from "../read-xml-text.ts";

/** Most keys that a request lists or deletes. */
const pageKeys = 1000;

interface FoundObject {
  readonly bytes: number;
  /** Hexadecimal, where the server verified it when the object was stored. */
  readonly sha256: string | undefined;
  readonly modifiedAt: Date;
}

export async function findObject(client: S3Client, key: string): Promise<FoundObject | undefined> {
  try {
    const headers = { "x-amz-checksum-mode": "ENABLED" };
    const answer = await client.send({ method: "HEAD", key, headers });
    const checksum = readAnswerHeader(answer, "x-amz-checksum-sha256");
    return {
      bytes: Number(readAnswerHeader(answer, "content-length")),
      sha256: checksum === undefined ? undefined : Buffer.from(checksum, "base64").toString("hex"),
      modifiedAt: new Date(readAnswerHeader(answer, "last-modified") ?? ""),
    };
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

/** The server refuses content that was damaged on its way. */
export async function putObject(
  client: S3Client,
  key: string,
  { content, signal }: { content: Uint8Array; signal?: AbortSignal | undefined },
): Promise<{ etag: string }> {
  const sha256 = createHash("sha256").update(content).digest("hex");
  const headers = checksumHeaders(sha256);
  const answer = await client.send({ method: "PUT", key, headers, body: content, signal });
  return { etag: readEtag(readAnswerHeader(answer, "etag"), key) };
}

/** Headers that make a server refuse content with another hash. */
export function checksumHeaders(sha256: string): Record<string, string> {
  return { "x-amz-checksum-sha256": Buffer.from(sha256, "hex").toString("base64") };
}

interface ListedObject {
  readonly key: string;
  readonly bytes: number;
  readonly etag: string;
  readonly modifiedAt: Date;
}

/** Objects whose keys begin with a text, in the order of their keys. */
export async function* listObjects(client: S3Client, prefix: string): AsyncGenerator<ListedObject> {
  const base = { "list-type": "2", prefix, "max-keys": String(pageKeys) };
  for (let token: string | undefined = ""; token !== undefined;) {
    const query = token === "" ? base : { ...base, "continuation-token": token };
    const { text } = await client.send({ method: "GET", key: "", query });
    for (const entry of readXmlElements(text, "Contents")) {
      const key = readXmlText(entry, "Key") ?? "";
      yield {
        key,
        bytes: Number(readXmlText(entry, "Size")),
        etag: readEtag(readXmlText(entry, "ETag"), key),
        modifiedAt: new Date(readXmlText(entry, "LastModified") ?? ""),
      };
    }
    const isTruncated = readXmlText(text, "IsTruncated") === "true";
    token = isTruncated ? readXmlText(text, "NextContinuationToken") : undefined;
  }
}

/** Deletes objects, there or not. */
export async function removeObjects(client: S3Client, keys: readonly string[]): Promise<void> {
  for (let first = 0; first < keys.length; first += pageKeys) {
    const page = keys.slice(first, first + pageKeys);
    const objects = page.map((key) => `<Object><Key>${key}</Key></Object>`).join("");
    const body = `<Delete><Quiet>true</Quiet>${objects}</Delete>`;
    const headers = {
      "content-type": "application/xml",
      "content-md5": createHash("md5").update(body).digest("base64"),
    };
    const { text } = await client.send({
      method: "POST",
      key: "",
      query: { delete: "" },
      headers,
      body,
    });
    const [problem] = readXmlElements(text, "Error");
    if (problem !== undefined) {
      throw new Error(`"${readXmlText(problem, "Key")}" cannot be deleted: ${problem}`);
    }
  }
}

export function readEtag(etag: string | undefined, key: string): string {
  if (etag === undefined) throw new Error(`The S3 server named no ETag of "${key}"`);
  return etag;
}

/** Copies an object of at most 5 GiB on the server. */
export async function copyObject(
  client: S3Client,
  { from, to }: { readonly from: string; readonly to: string },
): Promise<void> {
  const headers = { "x-amz-copy-source": `/${client.bucket}/${encodeKey(from)}` };
  const { text } = await client.send({ method: "PUT", key: to, headers, joins: true });
  // The status is sent before the copy is complete.
  const [problem] = readXmlElements(text, "Error");
  if (problem !== undefined) throw new Error(`"${from}" cannot be copied: ${problem}`);
}

export const blobPrefix = "blobs/";

/** Key of a blob. */
export function blobKey(sha256: string): string {
  return `${blobPrefix}${sha256.slice(0, 2)}/${sha256}`;
}

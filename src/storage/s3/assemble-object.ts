import { readAnswerHeader } from "../request-source.ts";
import { blobPrefix, findObject, readEtag } from "./objects.ts";
import { readXmlElements, readXmlText } from "../read-xml-text.ts";
import { encodeKey, isMissing, isUnavailable, type S3Client } from "./s3-client.ts";

const copiesAtOnce = 8;

interface Part {
  readonly key: string;
  /** Of the content that was measured: the server refuses the part where it is another by now. */
  readonly etag: string;
}

interface Assembly {
  readonly parts: readonly Part[];
  /** Content after the parts. */
  readonly tail: Uint8Array;
  readonly signal: AbortSignal | undefined;
}

/** Joins objects of at least 5 MiB into one on the server. The object is complete or not there. */
export async function assembleObject(
  client: S3Client,
  key: string,
  assembly: Assembly,
): Promise<void> {
  const { text } = await client.send({
    method: "POST",
    key,
    query: { uploads: "" },
  });
  const uploadId = readXmlText(text, "UploadId");
  if (uploadId === undefined) throw new Error(`The S3 server named no upload of "${key}"`);
  try {
    const etags = await sendParts(client, { key, uploadId }, assembly);
    await completeUpload(client, { key, uploadId }, etags);
  } catch (error) {
    if (isUnavailable(error)) throw error;
    // Where the answer to the request that joined the parts was lost, its repetition finds none.
    if (isMissing(error) && (await findObject(client, key)) !== undefined) return;
    await abortUpload(client, { key, uploadId }).catch((cause: unknown) => {
      if (!isMissing(cause)) throw cause;
    });
    throw error;
  }
}

interface MultipartUpload {
  readonly key: string;
  readonly uploadId: string;
}

async function sendParts(
  client: S3Client,
  upload: MultipartUpload,
  { parts, tail, signal }: Assembly,
): Promise<string[]> {
  const etags: string[] = [];
  const waiting = parts.entries();
  const copyWaiting = async () => {
    for (const [i, part] of waiting) {
      signal?.throwIfAborted();
      etags[i] = await copyPart(client, upload, { ...part, number: i + 1 });
    }
  };
  await Promise.all(Array.from({ length: copiesAtOnce }, copyWaiting));
  if (tail.length > 0) {
    etags.push(await sendPart(client, upload, { number: parts.length + 1, content: tail }));
  }
  return etags;
}

async function copyPart(
  client: S3Client,
  { key, uploadId }: MultipartUpload,
  { number, key: source, etag }: Part & { readonly number: number },
): Promise<string> {
  const { text } = await client.send({
    method: "PUT",
    key,
    query: { partNumber: String(number), uploadId },
    headers: {
      "x-amz-copy-source": `/${client.bucket}/${encodeKey(source)}`,
      "x-amz-copy-source-if-match": etag,
    },
  });
  return readEtag(readXmlText(text, "ETag"), source);
}

async function sendPart(
  client: S3Client,
  { key, uploadId }: MultipartUpload,
  { number, content }: { readonly number: number; readonly content: Uint8Array },
): Promise<string> {
  const answer = await client.send({
    method: "PUT",
    key,
    query: { partNumber: String(number), uploadId },
    body: content,
  });
  return readEtag(readAnswerHeader(answer, "etag"), key);
}

async function completeUpload(
  client: S3Client,
  { key, uploadId }: MultipartUpload,
  etags: readonly string[],
): Promise<void> {
  const parts = etags.map(
    (etag, i) => `<Part><PartNumber>${i + 1}</PartNumber><ETag>${etag}</ETag></Part>`,
  );
  const body = `<CompleteMultipartUpload>${parts.join("")}</CompleteMultipartUpload>`;
  const headers = { "content-type": "application/xml" };
  const request = { key, query: { uploadId }, headers, body, joins: true };
  const { text } = await client.send({ method: "POST", ...request });
  // The status is sent before the parts are joined.
  const [problem] = readXmlElements(text, "Error");
  if (problem !== undefined) throw new Error(`The S3 server cannot join "${key}": ${problem}`);
}

async function abortUpload(client: S3Client, { key, uploadId }: MultipartUpload): Promise<void> {
  await client.send({ method: "DELETE", key, query: { uploadId } });
}

/** Aborts assemblies of blobs whose process ended before them, a page of them. */
export async function abortUploadsBefore(client: S3Client, time: Date): Promise<void> {
  const { text } = await client.send({
    method: "GET",
    key: "",
    query: { uploads: "", prefix: blobPrefix },
  });
  for (const entry of readXmlElements(text, "Upload")) {
    const [key, uploadId] = [readXmlText(entry, "Key"), readXmlText(entry, "UploadId")];
    if (key === undefined || uploadId === undefined) continue;
    if (new Date(readXmlText(entry, "Initiated") ?? "") < time) {
      await abortUpload(client, { key, uploadId });
    }
  }
}

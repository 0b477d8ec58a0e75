import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { request } from "undici";
import { presignRequest, type S3Access } from "../../src/storage/s3/s3-client.ts";

/** Stores a file of any size up to 5 GiB as one object. */
export async function storeObject(access: S3Access, key: string, file: string): Promise<void> {
  const url = await presignRequest(access, { method: "PUT", key, seconds: 3600 });
  const headers = { "content-length": String((await stat(file)).size) };
  const answer = await request(url, { method: "PUT", headers, body: createReadStream(file) });
  if (answer.statusCode !== 200) throw new Error(await answer.body.text());
  await answer.body.dump();
}

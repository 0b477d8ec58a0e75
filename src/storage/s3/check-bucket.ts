import { createHash, randomUUID } from "node:crypto";
import { incomingFolder } from "./incoming-uploads.ts";
import { findObject, listObjects, putObject, removeObjects } from "./objects.ts";
import type { S3Client } from "./s3-client.ts";

const probe = Buffer.from("Written to see whether the bucket can be used.");

interface BucketAbilities {
  /** Whether the server verifies the SHA-256 of what it is sent, and remembers it. */
  readonly verifiesSha256: boolean;
}

/**
 * Writes, finds, lists and deletes an object.
 * @throws Error that names what the server refuses
 */
export async function checkBucket(client: S3Client): Promise<BucketAbilities> {
  const folder = incomingFolder(`.${randomUUID()}`);
  const key = `${folder}probe`;
  try {
    await putObject(client, key, { content: probe });
    const found = await findObject(client, key);
    const listed = await Array.fromAsync(listObjects(client, folder));
    await removeObjects(client, [key]);
    if (found === undefined || listed.length !== 1) throw new Error("It forgets what is written");
    const sha256 = createHash("sha256").update(probe).digest("hex");
    return { verifiesSha256: found.sha256 === sha256 };
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new Error(`Bucket "${client.bucket}" cannot be used: ${reason}`, { cause });
  }
}

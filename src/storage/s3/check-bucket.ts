import { createHash, randomUUID } from "node:crypto";
import { incomingFolder } from "./incoming-uploads.ts";
import { checksumHeaders, findObject, listObjects, putObject, removeObjects } from "./objects.ts";
import type { S3Client } from "./s3-client.ts";
import { S3Error } from "./s3-error.ts";

const probe = Buffer.from("Written to see whether the bucket can be used.");

interface BucketAbilities {
  /** Whether the server verifies the SHA-256 of what it is sent, and remembers it. */
  readonly verifiesSha256: boolean;
}

/** Whether content with another hash than the header's is refused, and not only remembered. */
async function refusesOtherContent(client: S3Client, key: string): Promise<boolean> {
  const headers = checksumHeaders(createHash("sha256").update("other content").digest("hex"));
  try {
    await client.send({ method: "PUT", key, headers, body: probe });
    await removeObjects(client, [key]);
    return false;
  } catch (error) {
    if (error instanceof S3Error && error.status === 400) return true;
    throw error;
  }
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
    const isRemembered = found.sha256 === sha256;
    return { verifiesSha256: isRemembered && (await refusesOtherContent(client, key)) };
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new Error(`Bucket "${client.bucket}" cannot be used: ${reason}`, { cause });
  }
}

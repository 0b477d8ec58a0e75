import { createHmac, randomBytes } from "node:crypto";

const secretPrefix = "whsec_";
const secretBytes = 32;

/** A secret as Standard Webhooks has it. */
export function generateWebhookSecret(): string {
  return `${secretPrefix}${randomBytes(secretBytes).toString("base64")}`;
}

/**
 * The headers of an event as Standard Webhooks has them: a signature for each secret. The timestamp
 * is in seconds since 1970.
 */
export function signEvent(
  { id, timestamp, body }: { id: string; timestamp: number; body: string },
  secrets: readonly string[],
) {
  const signatures = secrets.map((secret) => {
    const key = Buffer.from(secret.slice(secretPrefix.length), "base64");
    const signature = createHmac("sha256", key).update(`${id}.${timestamp}.${body}`);
    return `v1,${signature.digest("base64")}`;
  });
  return {
    "webhook-id": id,
    "webhook-timestamp": String(timestamp),
    "webhook-signature": signatures.join(" "),
  };
}

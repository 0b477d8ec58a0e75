import { createHmac, randomBytes } from "node:crypto";

const secretPrefix = "whsec_";
const secretBytes = 32;

/** A secret as Standard Webhooks has it. */
export function generateWebhookSecret(): string {
  return `${secretPrefix}${randomBytes(secretBytes).toString("base64")}`;
}

interface SignedEvent {
  readonly id: string;
  /** Seconds since 1970. */
  readonly timestamp: number;
  readonly body: string;
}

/** The headers of an event as Standard Webhooks has them: a signature for each secret. */
export function signEvent({ id, timestamp, body }: SignedEvent, secrets: readonly string[]) {
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

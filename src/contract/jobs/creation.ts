import { z } from "zod";
import { tokenId } from "../id.ts";
import { limits } from "../limits.ts";

const idempotencyKey = z
  .string()
  .min(1)
  .max(255)
  .regex(/^[\x21-\x7e]+$/, { error: "must be ASCII characters without spaces" })
  .optional()
  .describe(
    `The same key and body within ${limits.idempotencyHours} hours give the first answer again.`,
  );

/** Request headers of routes that create something. */
export const creationHeaders = z.object({ "idempotency-key": idempotencyKey });

/** Headers of their answers. */
export const createdHeaders = ["location", "idempotency-replayed"] as const;

/** Codes that all of them can answer with. */
export const creationErrors = [
  "unsupported_media_type",
  "payload_too_large",
  "idempotency_key_reused",
] as const;

/** Codes of routes that create jobs, besides. */
export const jobCreationErrors = [
  ...creationErrors,
  "too_many_jobs",
  "storage_full",
  "unknown_target",
  "recipe_unsupported",
  "model_source_refused",
  "model_not_found",
] as const;

/** Whose request did something. */
const requester = z.object({
  tokenId: tokenId
    .nullable()
    .describe("Null for a person who was signed in, and a ServiceAccount."),
  name: z.string().describe("Name of the token, of the person, or of the ServiceAccount."),
});
export type Requester = z.infer<typeof requester>;

export const createdBy = requester
  .optional()
  .describe("Whose request created it; absent where a resource of a cluster did, or a rerun.");
export type CreatedBy = z.infer<typeof createdBy>;

export const cancelledBy = requester
  .optional()
  .describe(
    "Whose request cancelled the job, or its batch; absent where nobody's did, such as for " +
      "`failFast`, and where a resource of a cluster was cancelled or deleted.",
  );

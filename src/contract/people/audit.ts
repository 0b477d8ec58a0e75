import { z } from "zod";
import { auditId, personId, tokenId } from "../id.ts";
import { pageFields, nextCursor } from "../page.ts";

/** A change that somebody asked for. Entries are never changed or deleted. */
export const auditEntry = z
  .object({
    id: auditId,
    at: z.iso.datetime(),
    action: z
      .string()
      .describe(
        "The operation of the interface, such as `cancelJob`; of buttons on GitHub `rerunJobs` " +
          "and `acceptBaselines`.",
      ),
    tokenId: tokenId
      .nullable()
      .describe(
        "Null for a person who is signed in, a command on the service's machine, the trust " +
          "policy, and a button on GitHub: `tokenName` says which.",
      ),
    tokenName: z.string().describe("Name of the token, or of the person."),
    personId: personId.nullable().describe("Who was signed in; null for everything else."),
    subject: z.string().describe("Id, name or SHA-256 of what was created or changed."),
  })
  .meta({ id: "AuditEntry" });
export type AuditEntry = z.infer<typeof auditEntry>;

export const auditQuery = z.strictObject(pageFields);
export type AuditQuery = z.infer<typeof auditQuery>;

export const auditPage = z
  .object({ entries: z.array(auditEntry), nextCursor })
  .meta({ id: "AuditPage" });
export type AuditPage = z.infer<typeof auditPage>;

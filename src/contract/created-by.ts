import { z } from "zod";
import { tokenId } from "./id.ts";

/** Whose request created something. */
export const createdBy = z
  .object({
    tokenId: tokenId
      .nullable()
      .describe("Null for a person who was signed in, and a ServiceAccount."),
    name: z.string().describe("Name of the token, of the person, or of the ServiceAccount."),
  })
  .optional()
  .describe("Whose request created it; absent where a resource of a cluster did, or a rerun.");
export type CreatedBy = z.infer<typeof createdBy>;

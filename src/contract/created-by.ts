import { z } from "zod";
import { tokenId } from "./id.ts";

/** Whose request created something. */
export const createdBy = z
  .object({
    tokenId: tokenId.nullable().describe("Null where a person was signed in."),
    name: z.string().describe("Name of the token, or of the person."),
  })
  .optional()
  .describe("Whose request created it; absent where a resource of a cluster did, or a rerun.");
export type CreatedBy = z.infer<typeof createdBy>;

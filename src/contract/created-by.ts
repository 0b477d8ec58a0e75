import { z } from "zod";
import { tokenId } from "./id.ts";

/** The token of the request by which something was created. */
export const createdBy = z
  .object({ tokenId, name: z.string().describe("Name of the token.") })
  .optional()
  .describe("Whose request created it; absent where a resource of a cluster did, or a rerun.");
export type CreatedBy = z.infer<typeof createdBy>;

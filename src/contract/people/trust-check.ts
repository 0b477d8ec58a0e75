import { z } from "zod";
import { scope } from "./token.ts";
import { projectName } from "../project.ts";

const claimValue = z.union([z.string().max(4096), z.number(), z.boolean(), z.null()]);

/** Body of `POST /trust-policy/check`. */
export const trustCheckRequest = z
  .strictObject({
    claims: z
      .record(z.string().max(100), claimValue)
      .describe("Claims of a workflow's identity token, with the issuer as `iss`."),
  })
  .meta({ id: "TrustCheckRequest" });

/** Which access token a workflow would get. */
export const trustCheck = z
  .object({
    grant: z
      .object({
        policy: z.string().describe("Name of the trust policy that fits."),
        project: projectName,
        scopes: z.array(scope),
        expiresInSeconds: z.int(),
      })
      .nullable()
      .describe("Null where the workflow would get no token."),
    mismatch: z
      .string()
      .nullable()
      .describe("The first claim that does not fit, in the policy that fits furthest."),
  })
  .meta({ id: "TrustCheck" });
export type TrustCheck = z.infer<typeof trustCheck>;

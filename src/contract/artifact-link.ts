import { z } from "zod";
import { artifactName } from "./artifact.ts";
import { jobId } from "./id.ts";
import { limits } from "./limits.ts";
import { sha256 } from "./model.ts";
import { integerParameter } from "./page-fields.ts";

export const artifactLinkRequest = z
  .strictObject({
    expiresInSeconds: z
      .int()
      .min(1)
      .max(limits.linkSeconds)
      .default(3600)
      .describe("For how long the link is valid."),
  })
  .meta({ id: "ArtifactLinkRequest" });

export const artifactLink = z
  .object({
    url: z.string().describe("GET downloads the file; who has the link needs no access token."),
    expiresAt: z.iso.datetime(),
  })
  .meta({ id: "ArtifactLink" });

export const linkedArtifactParams = z.object({ id: jobId, name: artifactName });

/** What the signature covers besides the path. */
export const linkedArtifactQuery = z.strictObject({
  expires: integerParameter(z.int().min(0)).describe("End of its validity, seconds since 1970."),
  sha256,
  signature: z
    .string()
    .regex(/^[A-Za-z0-9_-]{43}$/, { error: "must be 43 characters of base64url" })
    .describe("HMAC of all the rest."),
});
export type LinkedArtifact = z.infer<typeof linkedArtifactParams> &
  Omit<z.infer<typeof linkedArtifactQuery>, "signature">;

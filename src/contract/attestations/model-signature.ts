import { z } from "zod";
import { envelope, type AttestedJob } from "./attestation.ts";

/** The file that the OpenSSF's `model_signing` has a signature in, beside the model's own. */
const signatureFile = "model.sig";
const bundleType = "application/vnd.dev.sigstore.bundle.v0.3+json";

/** A signature in the bundle of sigstore, as `model_signing verify key` reads it. */
export const modelSignature = z
  .object({
    mediaType: z.literal(bundleType),
    verificationMaterial: z.object({
      publicKey: z.object({ hint: z.string().describe("SHA-256 of the key in the form of PEM.") }),
      tlogEntries: z.array(z.never()),
    }),
    dsseEnvelope: envelope,
  })
  .meta({ id: "ModelSignature" });
type ModelSignature = z.infer<typeof modelSignature>;

/**
 * All files of a result, as the OpenSSF's model signing says it. `hash` gives the SHA-256 of bytes,
 * both in hexadecimal digits.
 */
export function describeSignedModel(job: AttestedJob, hash: (bytes: string) => string): object {
  // Digests are hashed in the order of the names' code points, as Python sorts them.
  const files = job.artifacts.toSorted((a, b) => (a.name < b.name ? -1 : 1));
  const resources = files.map(({ name, sha256: digest }) => ({
    name,
    algorithm: "sha256",
    digest,
  }));
  return {
    _type: "https://in-toto.io/Statement/v1",
    subject: [
      {
        name: job.model.name,
        digest: { sha256: hash(files.map(({ sha256 }) => sha256).join("")) },
      },
    ],
    predicateType: "https://model_signing/signature/v1.0",
    predicate: {
      serialization: {
        method: "files",
        hash_type: "sha256",
        allow_symlinks: false,
        ignore_paths: [signatureFile],
      },
      resources,
    },
  };
}

export function bundleSignature(
  dsseEnvelope: ModelSignature["dsseEnvelope"],
  hint: string,
): ModelSignature {
  return {
    mediaType: bundleType,
    verificationMaterial: { publicKey: { hint }, tlogEntries: [] },
    dsseEnvelope,
  };
}

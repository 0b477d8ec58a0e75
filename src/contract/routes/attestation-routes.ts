import { z } from "zod";
import type { Route } from "./route.ts";
import { jobId } from "../id.ts";
import { attestationKey, attestations } from "../jobs/attestation.ts";

export const attestationRoutes = {
  getAttestations: {
    method: "GET",
    path: "/jobs/{id}/attestations",
    summary:
      "What a result was made of and what was measured of it, as in-toto statements that the " +
      "installation's key signs: SLSA's provenance, then the evaluation with its gates",
    action: "readWork",
    names: "job",
    params: z.object({ id: jobId }),
    replies: { 200: { json: attestations } },
    errors: ["not_found", "job_unfinished"],
  },
  getAttestationKey: {
    method: "GET",
    path: "/attestation-key",
    summary: "The public key of the installation's attestations",
    action: "readInterface",
    replies: { 200: { json: attestationKey } },
    errors: [],
  },
} as const satisfies Record<string, Route>;

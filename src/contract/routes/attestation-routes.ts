import { z } from "zod";
import type { Route } from "./route.ts";
import { jobId } from "../id.ts";
import { attestationKey, attestations } from "../attestations/attestation.ts";
import { modelBom } from "../attestations/model-bom.ts";
import { modelSignature } from "../attestations/model-signature.ts";

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
  getModelSignature: {
    method: "GET",
    path: "/jobs/{id}/model-signature",
    summary:
      "The signature of all files of a result, which the OpenSSF's `model_signing verify key` takes " +
      "as `model.sig` with `modelKey` of the attestation key",
    action: "readWork",
    names: "job",
    params: z.object({ id: jobId }),
    replies: { 200: { json: modelSignature } },
    errors: ["not_found", "job_unfinished"],
  },
  getModelBom: {
    method: "GET",
    path: "/jobs/{id}/model-bom",
    summary:
      "The bill of materials of a result: CycloneDX's ML-BOM with its files, its original and its figures",
    action: "readWork",
    names: "job",
    params: z.object({ id: jobId }),
    replies: { 200: { json: modelBom } },
    errors: ["not_found", "job_unfinished"],
  },
  getAttestationKey: {
    method: "GET",
    path: "/attestation-key",
    summary: "The public keys of the installation's attestations and signatures of models",
    action: "readInterface",
    replies: { 200: { json: attestationKey } },
    errors: [],
  },
} as const satisfies Record<string, Route>;

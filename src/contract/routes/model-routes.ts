import { z } from "zod";
import { jobId } from "../id.ts";
import { limits } from "../limits.ts";
import { manifest } from "../models/manifest.ts";
import { sha256, uploadRange } from "../models/model.ts";
import { nextCursor, pageFields } from "../page.ts";
import type { Route } from "./route.ts";

const uploadedModel = z
  .object({
    source: z.string().describe("What to name in `model.source`."),
    sha256,
    bytes: z.int(),
  })
  .meta({ id: "UploadedModel" });

const modelPage = z
  .object({
    models: z.array(uploadedModel.extend({ createdAt: z.iso.datetime() })),
    nextCursor,
  })
  .meta({ id: "ModelPage" });
export type ModelPage = z.infer<typeof modelPage>;

const modelVersion = z
  .object({
    name: z.string().describe("What jobs call the model."),
    source: z.string().describe("Where they read it."),
    jobs: z.int().describe(`Number of them, of the newest ${limits.countedJobs}.`),
    newestJobId: jobId,
  })
  .meta({ id: "ModelVersion" });

const modelVersions = z
  .object({
    versions: z
      .array(modelVersion)
      .max(limits.modelVersions)
      .describe(`At most ${limits.modelVersions}.`),
  })
  .meta({ id: "ModelVersions" });

const modelQuery = z.strictObject(pageFields);
export type ModelQuery = z.infer<typeof modelQuery>;

export const modelRoutes = {
  listModels: {
    method: "GET",
    path: "/models",
    summary: "List uploaded models, newest first",
    action: "listModels",
    query: modelQuery,
    replies: { 200: { json: modelPage } },
    errors: ["invalid_cursor"],
  },
  listModelVersions: {
    method: "GET",
    path: "/model-versions",
    summary:
      `List the models that the newest ${limits.countedJobs} jobs name, by name and source, ` +
      "newest jobs first",
    action: "readWork",
    replies: { 200: { json: modelVersions } },
    errors: [],
  },
  deleteModel: {
    method: "DELETE",
    path: "/models/{sha256}",
    summary: "Delete an uploaded model",
    action: "deleteModel",
    params: z.object({ sha256 }),
    audited: true,
    replies: { 204: { empty: true } },
    errors: ["not_found", "model_in_use"],
  },
  findModel: {
    method: "HEAD",
    path: "/models/{sha256}",
    summary: "Whether a model was uploaded, or how much of it",
    action: "uploadModel",
    params: z.object({ sha256 }),
    replies: { 200: { empty: true, headers: ["content-length"] } },
    errors: ["not_found"],
    errorHeaders: { not_found: ["upload-offset"] },
  },
  uploadModel: {
    method: "PUT",
    path: "/models/{sha256}",
    summary: "Upload a model",
    action: "uploadModel",
    params: z.object({ sha256 }),
    headers: z.object({ "content-range": uploadRange.optional() }),
    upload: true,
    audited: true,
    replies: { 200: { json: uploadedModel }, 201: { json: uploadedModel } },
    errors: [
      "upload_offset_mismatch",
      "payload_too_large",
      "model_checksum_mismatch",
      "too_many_bytes",
      "storage_full",
    ],
    errorHeaders: { upload_offset_mismatch: ["upload-offset"] },
  },
  createManifest: {
    method: "POST",
    path: "/manifests",
    summary: "Make one model of uploaded files: an ONNX file and its external data",
    action: "uploadModel",
    body: manifest,
    bodyBytes: limits.manifestBytes,
    audited: true,
    replies: { 200: { json: uploadedModel }, 201: { json: uploadedModel } },
    errors: [
      "unsupported_media_type",
      "payload_too_large",
      "model_not_found",
      "model_too_large",
      "too_many_bytes",
      "too_many_manifests",
      "storage_full",
    ],
  },
} as const satisfies Record<string, Route>;

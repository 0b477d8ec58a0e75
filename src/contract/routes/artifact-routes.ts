import { z } from "zod";
import type { Route } from "./route.ts";
import { batchId, jobId, personId, tokenId } from "../id.ts";
import { artifact, artifactName } from "../jobs/artifact.ts";
import { jobSummary } from "../jobs/job-summary.ts";
import { weightFiles } from "../jobs/weight-files.ts";
import { integerParameter } from "../page.ts";
import { limits } from "../limits.ts";
import { sha256 } from "../models/model.ts";

const artifactLinkRequest = z
  .strictObject({
    expiresInSeconds: z
      .int()
      .min(1)
      .max(limits.linkSeconds)
      .default(3600)
      .describe("For how long the link is valid; it ends with the access token at the latest."),
    withSummary: z
      .boolean()
      .default(false)
      .describe(
        "Whether the link also says what the file is: the model's name, the target, the recipe " +
          "in short, the figures and the gates. Without it there is the file only.",
      ),
  })
  .meta({ id: "ArtifactLinkRequest" });

export const artifactLink = z
  .object({
    url: z
      .string()
      .describe(
        "GET downloads the file; who has the link needs no access token. Browsers get a page " +
          "that says what the file is; with `download` in the query they get the file too.",
      ),
    expiresAt: z.iso
      .datetime()
      .describe("When the link ends: after the time that was asked for, or with the token."),
  })
  .meta({ id: "ArtifactLink" });

const linkedArtifactParams = z.object({ id: jobId, name: artifactName });

/** What the signature covers besides the path. */
const linkedArtifactQuery = z.strictObject({
  expires: integerParameter(z.int().min(0)).describe("End of its validity, seconds since 1970."),
  sha256,
  by: z
    .union([tokenId, personId])
    .optional()
    .describe("Token or person that made the link; absent for others."),
  summary: z
    .literal("true")
    .optional()
    .describe("Whether the link also says what the file is, as whoever made it chose."),
  download: z
    .string()
    .max(4)
    .optional()
    .describe("With any value, browsers get the file in place of a page. It is not signed."),
  signature: z
    .string()
    .regex(/^[A-Za-z0-9_-]{43}$/, { error: "must be 43 characters of base64url" })
    .describe("HMAC of all the rest."),
});
export type LinkedArtifact = z.infer<typeof linkedArtifactParams> &
  Omit<z.infer<typeof linkedArtifactQuery>, "signature" | "download">;

/** What people see of a job by a link to one of its files: no id of others, no owner, no commit. */
const linkedResult = jobSummary.pick({
  model: true,
  target: true,
  scheme: true,
  granularity: true,
  blockSize: true,
  status: true,
  dryRun: true,
  figures: true,
  warnings: true,
  gates: true,
  finishedAt: true,
});
export type LinkedResult = z.infer<typeof linkedResult>;

export const linkedFile = artifact
  .pick({ name: true, bytes: true, sha256: true })
  .extend({
    expiresAt: z.iso.datetime(),
    weightFiles,
    result: linkedResult
      .nullable()
      .describe("What the file is of; null where the link is to the file only."),
  })
  .meta({ id: "LinkedFile" });
export type LinkedFile = z.infer<typeof linkedFile>;

const fileHeaders = ["etag", "accept-ranges", "content-disposition"] as const;

const downloadHeaders = z.object({
  range: z.string().max(200).optional().describe("One range of bytes, `bytes=FIRST-LAST`."),
  "if-none-match": z.string().max(1000).optional(),
  "if-range": z.string().max(200).optional(),
});

const downloadReplies = {
  200: { stream: ["application/octet-stream"], headers: [...fileHeaders, "content-length"] },
  206: {
    stream: ["application/octet-stream"],
    headers: [...fileHeaders, "content-length", "content-range"],
  },
  304: { empty: true, headers: ["etag"] },
} as const;

export const artifactRoutes = {
  listArtifacts: {
    method: "GET",
    path: "/jobs/{id}/artifacts",
    summary: "Files that a job produced",
    action: "readWork",
    names: "job",
    params: z.object({ id: jobId }),
    replies: {
      200: { json: z.object({ artifacts: z.array(artifact) }).meta({ id: "ArtifactList" }) },
    },
    errors: ["not_found"],
  },
  getArtifact: {
    method: "GET",
    path: "/jobs/{id}/artifacts/{name}",
    summary: "Download a file that a job produced",
    action: "readWork",
    names: "job",
    params: z.object({ id: jobId, name: artifactName }),
    headers: downloadHeaders,
    replies: downloadReplies,
    errors: ["not_found", "artifact_missing", "range_not_satisfiable"],
  },
  linkArtifact: {
    method: "POST",
    path: "/jobs/{id}/artifacts/{name}/link",
    summary:
      "Make a link to a file, which is valid for a while without an access token, as long as the " +
      "job has the file and whoever made the link could read it",
    action: "readWork",
    names: "job",
    params: z.object({ id: jobId, name: artifactName }),
    body: artifactLinkRequest,
    bodyBytes: 4096,
    audited: true,
    replies: { 201: { json: artifactLink } },
    errors: ["unsupported_media_type", "payload_too_large", "not_found"],
  },
  deleteLinks: {
    method: "DELETE",
    path: "/jobs/{id}/links",
    summary: "End all links to a job's files; new ones can be made",
    action: "deleteLinks",
    names: "job",
    params: z.object({ id: jobId }),
    audited: true,
    replies: { 204: { empty: true } },
    errors: ["not_found"],
  },
  getLinkedArtifact: {
    method: "GET",
    path: "/links/{id}/{name}",
    summary: "Download a file by a link to it",
    action: "followLink",
    open: true,
    params: linkedArtifactParams,
    query: linkedArtifactQuery,
    headers: downloadHeaders,
    replies: downloadReplies,
    errors: ["not_found", "artifact_missing", "link_expired", "range_not_satisfiable"],
  },
  describeLink: {
    method: "GET",
    path: "/links/{id}/{name}/summary",
    summary: "What a link leads to: the file, and what it is of where the link says so",
    action: "followLink",
    open: true,
    params: linkedArtifactParams,
    query: linkedArtifactQuery,
    replies: { 200: { json: linkedFile } },
    errors: ["not_found", "link_expired"],
  },
  getBatchArtifacts: {
    method: "GET",
    path: "/batches/{id}/artifacts",
    summary:
      "Download all files that the jobs of a batch have produced as a tar archive, each as " +
      "`JOB-NAME/ARTIFACT`, after a `manifest.json` with their jobs and hashes. The connection " +
      "breaks where a file cannot be read; where one is not stored, there is no archive",
    action: "readWork",
    names: "batch",
    params: z.object({ id: batchId }),
    replies: {
      200: { stream: ["application/x-tar"], headers: ["content-disposition"] },
    },
    errors: ["not_found", "artifact_missing"],
  },
} as const satisfies Record<string, Route>;

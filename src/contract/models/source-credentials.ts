import { z } from "zod";
import { projectName } from "../project.ts";

const projects = z
  .array(projectName)
  .min(1)
  .max(1000)
  .optional()
  .describe("Projects whose jobs may use them; without it those of every project.");
const httpUrl = z.url({ protocol: /^https?$/ });

const bucketAccess = z.strictObject({
  bucket: z.string().min(1).max(222),
  accessKeyId: z.string().min(1),
  secretAccessKey: z.string().min(1),
  endpoint: httpUrl.optional().describe("By default AWS or Google Cloud Storage."),
  region: z.string().min(1).optional().describe("`us-east-1` for S3, `auto` for Google's."),
  pathStyle: z.boolean().default(true).describe("Whether the bucket is in the address's path."),
  projects,
});
export type BucketAccess = z.infer<typeof bucketAccess>;

const hubAccess = z.strictObject({
  owner: z.string().min(1).max(96).optional().describe("Whose repositories; by default all."),
  token: z.string().min(1).optional(),
  endpoint: httpUrl.default("https://huggingface.co"),
  projects,
});

/**
 * Credentials with which the service finds models: of several that fit a source and a project, the
 * first counts.
 */
export const sourceCredentials = z.strictObject({
  s3: z.array(bucketAccess).max(1000).default([]).describe("Buckets of `s3://` sources."),
  gs: z
    .array(bucketAccess)
    .max(1000)
    .default([])
    .describe("Buckets of `gs://` sources, with HMAC keys of the S3 interface."),
  hf: z
    .array(hubAccess)
    .max(1000)
    .default([])
    .describe("Hugging Face Hubs of `hf://` sources; without any the public one, without a token."),
});
export type SourceCredentials = z.infer<typeof sourceCredentials>;

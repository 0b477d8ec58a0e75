import { z } from "zod";
import { text } from "../settings/environment-values.ts";

/** Environment variables of the bucket that keeps models and artifacts in place of a folder. */
export const s3Settings = {
  MOS_S3_BUCKET: z
    .string()
    .regex(/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/, {
      error: "must be 3 to 63 lower-case letters, digits, '.' and '-', none of these two at an end",
    })
    .optional()
    .describe(
      [
        "Bucket of an S3 server that keeps models and artifacts;",
        "without it they are in `MOS_DATA_DIR`.",
      ].join(" "),
    ),
  MOS_S3_ENDPOINT: z
    .url({ protocol: /^https?$/ })
    .default("https://s3.amazonaws.com")
    .describe("Address of the S3 server, which workers reach too: they read and send files there."),
  MOS_S3_REGION: text.default("us-east-1").describe("Region of the bucket."),
  MOS_S3_PATH_STYLE: z
    .enum(["true", "false"])
    .default("true")
    .transform((isPathStyle) => isPathStyle === "true")
    .describe("Whether addresses have the bucket in their path (`true`) or in their host."),
  MOS_S3_ACCESS_KEY_ID: text.optional().describe("Id of the access key for the bucket."),
  MOS_S3_SECRET_ACCESS_KEY_FILE: text
    .optional()
    .describe("File with the secret of the access key."),
  MOS_SOURCE_CREDENTIALS_FILE: text
    .optional()
    .describe(
      [
        "YAML file of the credentials for `s3://`, `gs://` and `hf://` models;",
        "without it there are those of public Hugging Face repositories.",
      ].join(" "),
    ),
};

import { z } from "zod";
import { modelSource } from "./model-source.ts";

export const sha256 = z
  .string()
  .max(64)
  .regex(/^[0-9a-f]{64}$/, { error: "must be 64 lower-case hexadecimal digits" })
  .describe("SHA-256 as 64 lower-case hexadecimal digits.");

/** Which part of a model the body of an upload is. */
export const uploadRange = z
  .string()
  .max(100)
  .regex(/^bytes \d{1,15}-\d{1,15}\/\d{1,15}$/, { error: "must be bytes FIRST-LAST/SIZE" })
  .describe(
    "`bytes FIRST-LAST/SIZE`: the body is the rest of an upload that broke off. FIRST is at " +
      "most the `Upload-Offset` of the answer to HEAD, LAST is SIZE - 1.",
  );

/** Where a model is and, optionally, what it must hash to. */
export const modelReference = z
  .strictObject({
    source: modelSource.describe(
      "Where the ONNX file, or a language model's GGUF file, is: `https://…` (`http://…` where the administrator allows it), " +
        "`s3://BUCKET/KEY` or `gs://BUCKET/KEY` of a bucket that the service has credentials " +
        "for, `hf://OWNER/REPOSITORY@REVISION/PATH` of a Hugging Face Hub, whose revision a job " +
        "records as its commit, `file:///…` under an allowed folder, or `upload:sha256:…` of an " +
        "uploaded file or a manifest. Files of its external data are read from beside it, those " +
        "of uploads are named by a manifest. A language model's folder is read with config.json and " +
        "safetensors files: `hf://OWNER/REPOSITORY@REVISION`, or another source that ends with `/`.",
    ),
    sha256: sha256.optional().describe("The job fails unless the file has this SHA-256."),
    name: z
      .string()
      .max(100)
      .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/, {
        error: "must be 1 to 100 letters, digits, '.', '_' or '-', the first a letter or digit",
      })
      .optional()
      .describe("Short name for tables and reports; by default the file's name."),
  })
  .meta({ id: "ModelReference" });
export type ModelReference = z.infer<typeof modelReference>;

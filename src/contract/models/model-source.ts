import { ServiceError } from "../errors.ts";
import { valueRules } from "../rule.ts";
import { boundedText } from "../text/bounded-text.ts";

const bucketAndKey = "[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]/.";

/** How sources begin, and what follows there. */
const forms = {
  "http://": "",
  "https://": "",
  "file:///": "",
  "upload:": "sha256:[0-9a-f]{64}$",
  "s3://": bucketAndKey,
  "gs://": bucketAndKey,
  "hf:/": "(/[A-Za-z0-9_.-]{1,96}){2}(@[A-Za-z0-9_.%-]{1,200})?(/.*)?$",
};
const alternatives = Object.entries(forms).map(([start, rest]) => start + rest);

const message =
  "must be https://…, http://…, s3://BUCKET/KEY, gs://BUCKET/KEY, " +
  "hf://OWNER/REPOSITORY@REVISION, the same with /PATH, file:///… or upload:sha256:<64 hex digits>";

const addressMessage = "must be a URL with a valid host and port";

/** An entry of an index of PostgreSQL has 2,700 bytes at most, with the other fields of the row. */
const maxBytes = 2048;
const bytesMessage = `must have at most ${maxBytes} bytes`;
const encoder = new TextEncoder();

/** Where a file is that a job reads: its model, or the data of its evaluation. */
export const modelSource = boundedText({ min: 1, max: maxBytes })
  .refine((source) => encoder.encode(source).length <= maxBytes, { error: bytesMessage })
  .regex(new RegExp(`^(${alternatives.join("|")})`), { error: message, abort: true })
  .refine((source) => URL.canParse(source), { error: addressMessage });

/** The API server bounds the length of a pattern in CEL: each form has a rule of its own, `\w` is ASCII. */
const celForms = Object.entries(forms)
  .filter(([, rest]) => rest !== "")
  .map(([start, rest]) => {
    const pattern = `^${start}${rest}`.replaceAll("A-Za-z0-9_", String.raw`\w`);
    return `!self.startsWith('${start}') || self.matches(r'${pattern}')`;
  });
const starts = Object.keys(forms).map((start) => `'${start}'`);
valueRules.add(modelSource, {
  rules: [
    ...[`[${starts.join(", ")}].exists(start, self.startsWith(start))`, ...celForms].map((cel) => ({
      message,
      cel,
    })),
    { message: bytesMessage, cel: `bytes(self).size() <= ${maxBytes}` },
    // The API server refuses paths that browsers take, such as /100%: it checks the host only.
    {
      message: addressMessage,
      cel: "!self.startsWith('http') || isURL(self.find('^https?://[^/?#]+'))",
    },
  ],
});

/** Whether workers get a file over the network, so that later steps of a job use a stored copy. */
export function isRemoteSource(source: string): boolean {
  return /^(https?|s3|gs|hf):/.test(source);
}

/** Whether a source names a folder, as language models are: a repository, or a path that ends so. */
export function isFolderSource(source: string): boolean {
  return isRepository(source) || /^(file|hf|s3|gs|https?):.*\/$/.test(source);
}

function isRepository(source: string): boolean {
  return /^hf:\/\/[^/]+\/[^/]+$/.test(source);
}

/** Whether the service says at which address workers find a file. */
export function isLocatedSource(source: string): boolean {
  return /^(s3|gs|hf):/.test(source);
}

const uploadScheme = "upload:sha256:";

/** How a request names an uploaded file or a manifest. */
export function uploadSource(sha256: string): string {
  return uploadScheme + sha256;
}

/** Hash of the upload that a source names; undefined for other sources. */
export function findUploadHash(source: string): string | undefined {
  return source.startsWith(uploadScheme) ? source.slice(uploadScheme.length) : undefined;
}

/** Source of a file below the folder of a remote file. */
export function sourceBeside(source: string, path: string): string {
  if (isLocatedSource(source)) return folderPart(source) + path;
  const url = new URL(source);
  url.pathname = folderPart(url.pathname) + path.split("/").map(encodeURIComponent).join("/");
  return url.href;
}

/** Whether a remote source is another one or lies below its folder. */
export function isSourceBeside(source: string, other: string): boolean {
  if (source === other) return true;
  if (isLocatedSource(other)) return source.startsWith(folderPart(other));
  if (!isRemoteSource(other)) return false;
  const [url, base] = [new URL(source), new URL(other)];
  const isBelow = url.pathname.startsWith(folderPart(base.pathname));
  url.pathname = base.pathname;
  return isBelow && url.href === base.href;
}

function folderPart(path: string): string {
  return isRepository(path) ? `${path}/` : path.replace(/[^/]*$/, "");
}

/** For a job that names an upload which its project does not have. */
export function missingUploadError(sha256: string): ServiceError {
  return new ServiceError("model_not_found", `No file with SHA-256 ${sha256} was uploaded`);
}

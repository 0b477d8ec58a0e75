import { z } from "zod";
import { hasHiddenCharacters } from "../text/hidden-characters.ts";
import { limits } from "../limits.ts";
import { sha256 } from "./model.ts";

/** Whether a path leads below its folder, on every system, and looks like what it is. */
export const isModelFilePath = (path: string) =>
  !path.includes("\\") &&
  !/^[A-Za-z]:/.test(path) &&
  !hasHiddenCharacters(path) &&
  path.split("/").every((part) => part !== "" && part !== "." && part !== "..");

/** Where a file of a model lies, below the folder that all of them have in common. */
export const modelFilePath = z
  .string()
  .min(1)
  .max(255)
  .refine(isModelFilePath, {
    error: 'must be a relative path with "/" between its parts, without "." and ".."',
  })
  .describe("Relative to the folder of the model's files, such as `weights/model.onnx.data`.");

/** Whether each path is that of a file of its own. */
function areFilesDistinct(files: readonly { readonly path: string }[]): boolean {
  const paths = new Set(files.map(({ path }) => path));
  const folders = files.flatMap(({ path }) => {
    const parts = path.split("/").slice(0, -1);
    return parts.map((_, i) => parts.slice(0, i + 1).join("/"));
  });
  return paths.size === files.length && !folders.some((folder) => paths.has(folder));
}

const manifestFile = z.strictObject({ path: modelFilePath, sha256 });

/** Body of `POST /manifests`: the uploaded files that together are a model. */
export const manifest = z
  .strictObject({
    files: z
      .array(manifestFile)
      .min(1)
      .max(limits.manifestFiles)
      .refine(areFilesDistinct, {
        error: "must not name a path twice, nor a file as a folder of another",
      })
      .describe("The ONNX file first, then every file that it has external data in."),
  })
  .meta({ id: "Manifest" });
export type Manifest = z.infer<typeof manifest>;

/** A file of a model, as a worker gets it. */
export const modelFile = z.object({ path: modelFilePath, sha256, bytes: z.int().min(0) });
export type ModelFile = z.infer<typeof modelFile>;

/** A file that is stored as an upload. */
export interface StoredUpload {
  readonly sha256: string;
  readonly bytes: number;
  /** What it names as a manifest; none where it is another file. */
  readonly files: readonly ModelFile[];
}

import { createWriteStream } from "node:fs";
import { stat, writeFile } from "node:fs/promises";
import path from "node:path";
import { pipeline } from "node:stream/promises";
import { pack } from "tar-stream";
import type { Artifact } from "../contract/jobs/artifact.ts";
import { languageFiles } from "../engine/language/language-files.ts";
import { isCheckpoint } from "../engine/language/open-language-model.ts";
import { readPieces } from "../model-files/read-pieces.ts";

type ResultFile = Pick<Artifact, "name" | "kind" | "bytes">;

/** Name of the archive of a language model's folder. */
const archiveName = "model.tar";

/**
 * Writes what ONNX Runtime GenAI reads beside the result of a checkpoint.
 * @returns the files, none where the model is an ONNX file
 */
export async function writeLanguageFiles(
  modelPath: string,
  provider: "cpu" | "cuda",
  folder: string,
): Promise<ResultFile[]> {
  if (!isCheckpoint(modelPath)) return [];
  const files: ResultFile[] = [];
  for (const [name, content] of await languageFiles(modelPath, provider)) {
    await writeFile(path.join(folder, name), content);
    files.push({ name, kind: "configuration", bytes: content.length });
  }
  return files;
}

/**
 * Writes files of a folder as a tar archive in it, uncompressed: models hardly get smaller.
 * @returns the archive
 */
export async function writeArchive(
  folder: string,
  names: readonly string[],
  signal: AbortSignal,
): Promise<ResultFile> {
  const archive = pack();
  const fill = async () => {
    for (const name of names) {
      const file = path.join(folder, name);
      const { size } = await stat(file);
      const entry = archive.entry({ name, size, mtime: new Date(0) });
      await pipeline(readPieces(file, signal), entry, { signal });
    }
    archive.finalize();
  };
  const target = path.join(folder, archiveName);
  await Promise.all([fill(), pipeline(archive, createWriteStream(target), { signal })]);
  return { name: archiveName, kind: "archive", bytes: (await stat(target)).size };
}

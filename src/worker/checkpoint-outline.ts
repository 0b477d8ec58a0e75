import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { z } from "zod";
import { sha256 } from "../contract/models/model.ts";
import { modelFilePath } from "../contract/models/manifest.ts";
import { configFileName } from "../engine/language/open-language-model.ts";
import type { FetchOptions } from "../storage/fetch-model.ts";
import type { FetchedCheckpoint } from "./fetch-checkpoint.ts";
import { openRemoteShards, type RemoteShards } from "./remote-shards.ts";

/** What other pods need of a checkpoint that one pod has opened: all but its weights. */
const checkpointOutline = z.object({
  sha256,
  bytes: z.int().min(0),
  files: z.array(z.object({ name: modelFilePath, content: z.base64() })),
  shards: z.array(
    z.object({
      name: modelFilePath,
      bytes: z.int().min(0),
      version: z.string().optional(),
    }),
  ),
});

/** Writes the configuration, the files of the tokenizer and the heads of the shards to a file. */
export async function writeCheckpointOutline(
  { path: configPath, bytes, sha256: hash, remote }: FetchedCheckpoint,
  file: string,
): Promise<void> {
  const folder = path.dirname(configPath);
  const shards = remote?.shards ?? [];
  const files: { name: string; content: string }[] = [];
  // Pods read files of their own machine where they are.
  if (shards.length > 0) {
    for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
      if (!entry.isFile()) continue;
      const name = path.join(path.relative(folder, entry.parentPath), entry.name);
      const content = await readFile(path.join(folder, name), "base64");
      files.push({ name, content });
    }
  }
  const outline: z.input<typeof checkpointOutline> = {
    sha256: hash,
    bytes,
    files,
    shards: [...shards],
  };
  await writeFile(file, JSON.stringify(outline));
}

/**
 * Makes the folder again, whose shards are read by ranges.
 * @param source of the checkpoint's folder
 */
export async function restoreCheckpointOutline(
  file: string,
  source: string,
  options: FetchOptions,
): Promise<FetchedCheckpoint & { readonly remote: RemoteShards }> {
  const text = await readFile(file, "utf8");
  const { sha256: hash, bytes, files, shards } = checkpointOutline.parse(JSON.parse(text));
  const folder = path.dirname(options.path);
  for (const { name, content } of files) {
    const target = path.join(folder, name);
    await mkdir(path.dirname(target), { recursive: true });
    await writeFile(target, content, "base64");
  }
  const remote = await openRemoteShards(source, shards, options);
  return { path: path.join(folder, configFileName), bytes, sha256: hash, remote };
}

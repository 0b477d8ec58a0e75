import { mkdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { findTarget, resolveRecipe } from "../../src/contract/jobs/resolve-recipe.ts";
import { builtinTargets } from "../../src/contract/jobs/target.ts";
import { compressModel } from "../../src/engine/compress-model.ts";
import { readPeakMemoryBytes } from "../../src/engine/runtime/read-peak-memory-bytes.ts";
import { optimizeShare } from "../../src/engine/partial-plan.ts";
import { createDirectoryBlobStore } from "../../src/storage/directory-blob-store.ts";
import { fetchModelFiles } from "../../src/worker/fetch-model-files.ts";
import { writeLanguageFiles } from "../../src/worker/language-result.ts";

/**
 * Converts a checkpoint as a worker does, going on where an earlier process was killed: arguments are
 * its source and a folder, and for a share of the work their number and its index.
 */
const [source = "", folder = "", count = "0", index] = process.argv.slice(2);

const start = performance.now();
const target = findTarget(builtinTargets, "cpu-llm");
const scratch = join(folder, "scratch");
const outputDirectory = join(folder, "result");
for (const emptied of [scratch, outputDirectory]) {
  await rm(emptied, { recursive: true, force: true });
  await mkdir(emptied);
}
const modelFolder = join(scratch, "model");
await mkdir(modelFolder);
const signal = new AbortController().signal;
const { path, remote, sha256 } = await fetchModelFiles(
  { source, name: "model" },
  {
    path: join(modelFolder, "model.onnx"),
    blobs: await createDirectoryBlobStore(join(scratch, "blobs")),
    limits: { maxModelBytes: 1e12, allowedRoots: ["/"], allowPrivateAddresses: true },
    readsRanges: true,
    locateSource: () => Promise.reject(new TypeError("The source has an address")),
    signal,
    onProgress: () => {},
  },
);
const work = {
  kind: "compress",
  target,
  // What ONNX Runtime GenAI's builder does by default.
  recipe: resolveRecipe(target.recipe, { offsets: "none", overrides: [] }),
  modelSha256: sha256,
  remote,
  signal,
  onProgress: () => {},
} as const;
if (index === undefined) {
  const keptDirectory = join(folder, "kept");
  await compressModel(path, { ...work, keptDirectory, outputDirectory, log: () => {} });
  await writeLanguageFiles(path, target.executionProvider, outputDirectory);
} else {
  const outputPath = join(scratch, "share");
  const share = { index: Number(index), count: Number(count) };
  await optimizeShare(path, { ...work, share, outputPath });
  await rename(outputPath, join(folder, `share-${index}`));
}
await rm(scratch, { recursive: true });
const seconds = (performance.now() - start) / 1000;
const { user, system } = process.cpuUsage();
const cost = { seconds, cpuSeconds: (user + system) / 1e6, peakBytes: await readPeakMemoryBytes() };
process.stdout.write(JSON.stringify(cost));

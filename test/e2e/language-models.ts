import assert from "node:assert/strict";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { effectiveRecipe, findTarget } from "../../src/contract/jobs/resolve-recipe.ts";
import { compressModel } from "../../src/engine/compress-model.ts";
import { hashStoredFile } from "../../src/storage/hash-stored-file.ts";
import { makeFolder } from "../engine/quantize/compress.ts";
import type { Installation } from "./installation.ts";
import { targets } from "./targets.ts";

const checkpoint = fileURLToPath(
  new URL("../engine/language/checkpoints/llama3/", import.meta.url),
);
const weightsName = "model.safetensors";
const recipe = {
  minElements: 0,
  evaluation: { samples: 1, latencyBudgetSeconds: 0 },
} as const;

/** Four pods share a checkpoint that stays at its host, and a fifth runs it from what they have read. */
export async function testSharedCheckpoint(
  t: TestContext,
  { apply, client, cluster, readResourceField, untilField }: Installation,
): Promise<void> {
  const host = await startHost(t, cluster.hostAddress);
  const model = { source: host.source };
  await apply("CompressionJob", "shared-checkpoint", {
    model,
    target: "cpu",
    recipe: { ...recipe, parallelism: 4 },
  });
  await untilField("cpj/shared-checkpoint", ".status.status", "Completed");
  const id = await readResourceField("cpj/shared-checkpoint", ".status.jobId");
  const { artifacts, telemetry } = await client.call("getJob", { params: { id } });
  assert.equal(telemetry.accuracy?.level, "outputs");
  for (const [name, sha256] of await compressHere()) {
    assert.equal(artifacts.find((artifact) => artifact.name === name)?.sha256, sha256, name);
  }
  assert.equal(host.sentWeightBytes(), host.weightBytes);
}

/** Hashes of the files that one process makes, by their names. */
async function compressHere(): Promise<Map<string, string>> {
  await using folder = await makeFolder();
  const target = findTarget(targets, "cpu");
  const { files } = await compressModel(join(checkpoint, "config.json"), {
    kind: "compress",
    target,
    recipe: effectiveRecipe(target, recipe),
    outputDirectory: folder.path,
    signal: new AbortController().signal,
    onProgress: () => {},
    log: () => {},
  });
  const hashes = new Map<string, string>();
  for (const { name } of files) {
    const { sha256 } = await hashStoredFile(join(folder.path, name), { signal: undefined });
    hashes.set(name, sha256);
  }
  return hashes;
}

/** Serves the checkpoint where pods reach it. */
async function startHost(t: TestContext, address: string) {
  const weights = await readFile(join(checkpoint, weightsName));
  const tokenizer = { version: "1.0", model: { type: "WordPiece", vocab: { t: 0 } } };
  const files = new Map([
    ["/llama3/config.json", await readFile(join(checkpoint, "config.json"))],
    ["/llama3/tokenizer.json", Buffer.from(JSON.stringify(tokenizer))],
    [`/llama3/${weightsName}`, weights],
  ]);
  let sent = 0;
  const server = createServer(({ url = "", headers }, response) => {
    const content = files.get(url);
    const [, first, last] = /^bytes=(\d+)-(\d+)$/.exec(headers.range ?? "") ?? [];
    if (content === undefined) {
      response.writeHead(404).end();
    } else if (first === undefined) {
      response.writeHead(200).end(content);
    } else {
      const part = content.subarray(Number(first), Number(last) + 1);
      sent += part.length;
      const range = `bytes ${first}-${Number(first) + part.length - 1}/${content.length}`;
      response.writeHead(206, { etag: '"1"', "content-range": range }).end(part);
    }
  });
  await once(server.listen(0, address), "listening");
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  const bound = server.address();
  assert.ok(typeof bound === "object" && bound !== null);
  return {
    source: `http://${address}:${bound.port}/llama3/`,
    weightBytes: weights.length,
    sentWeightBytes: () => sent,
  };
}

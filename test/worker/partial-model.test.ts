import assert from "node:assert/strict";
import { chmod, readFile, stat, writeFile } from "node:fs/promises";
import path from "node:path";
import { test } from "node:test";
import type { PartialRecipe } from "../../src/contract/jobs/recipe.ts";
import { workerExit } from "../../src/contract/worker-protocol/exit-codes.ts";
import { blobPath } from "../../src/storage/directory-blob-store.ts";
import { floatInitializer, node, tensorInfo, writeTinyModel } from "../support/tiny-model.ts";
import { type PodService, startPodService } from "./pod-service.ts";
import { listJobArtifacts, runSteps, waitForPodEnd } from "./pod-steps.ts";

const layers = 8;
const size = 512;
const layerBytes = size * size * 4;
const unevaluated: PartialRecipe = { evaluation: { level: "none" } };

/**
 * A model of eight weights of 1 MB, one constant of as much that no scheme changes, and a convolution
 * that a number goes into.
 */
async function writeLayers({ folder }: PodService) {
  const file = path.join(folder, "layers.onnx");
  const initializer = Array.from({ length: layers }, (_, layer) =>
    floatInitializer(`w${layer}`, [size, size], (index) => Math.sin(index * (layer + 1))),
  );
  const constant = floatInitializer("constant", [1, size, size], Math.cos);
  const nodes = initializer.map(({ name = "" }, layer) =>
    node("MatMul", [layer === 0 ? "x" : `h${layer}`, name], [`h${layer + 1}`]),
  );
  await writeTinyModel(file, {
    node: [
      ...nodes,
      node("Add", [`h${layers}`, "constant"], ["a"]),
      node("Conv", ["a", "kernel"], ["b"]),
      node("Mul", ["b", "two"], ["y"]),
    ],
    input: [tensorInfo("x", [size, size])],
    output: [tensorInfo("y", [1, 16, size])],
    initializer: [
      ...initializer,
      constant,
      floatInitializer("kernel", [16, size, 1], Math.sin),
      floatInitializer("two", [], () => 2),
    ],
  });
  return { file, model: { source: `file://${file}`, name: "net" } };
}

async function uploadLayers(service: PodService) {
  const { file } = await writeLayers(service);
  const { size: bytes } = await stat(file);
  const sha256 = await service.upload(file);
  return { model: { source: `upload:sha256:${sha256}`, name: "net" }, sha256, bytes };
}

/** Counts the bytes of blobs that the service sends to each pod. */
function countSentBytes(service: PodService): ReadonlyMap<string, number> {
  const sent = new Map<string, number>();
  service.onRequest = ({ method, url = "", headers }, response) => {
    if (method !== "GET" || !url.includes("/blobs/")) return false;
    const pod = headers.authorization?.replace("Bearer token-of-", "") ?? "";
    const write = response.write.bind(response);
    response.write = (chunk: Uint8Array) => {
      sent.set(pod, (sent.get(pod) ?? 0) + chunk.length);
      return write(chunk);
    };
    return false;
  };
  return sent;
}

for (const scheme of ["int8-weight", "int4-weight"] as const) {
  test(`pods in ${scheme} read only the bytes of their shares, and store what one pod stores`, async (t) => {
    const service = await startPodService(t);
    const { model, bytes } = await uploadLayers(service);
    const recipe = { ...unevaluated, scheme, parallelism: 4 };
    const whole = await service.createJob(model, recipe);
    await waitForPodEnd(await service.startPod(whole));
    const shared = await service.createJob(model, recipe);
    const sent = countSentBytes(service);
    await runSteps(service, shared, 4);
    const [shard = 0, ...later] = [...sent.values()];
    const shares = later.slice(0, 4);
    assert.equal(shard, bytes);
    for (const share of shares) {
      assert(share >= 2 * layerBytes && share < 2.1 * layerBytes, `${share} of ${bytes} bytes`);
    }
    const assembled = later[4] ?? 0;
    const result = (await service.find(shared)).telemetry.size?.resultBytes ?? 0;
    assert(assembled < result + 0.1 * layerBytes, `${assembled} bytes for a result of ${result}`);
    assert.deepEqual(
      (await listJobArtifacts(service, shared))[0],
      (await listJobArtifacts(service, whole))[0],
    );
    const lines = await service.readLogTexts(shared);
    assert.match(lines.join("\n"), /\[fetch 1\/4\] Read 2\.\d+ MB of the model's 9\.\d+ MB/);
  });
}

test("a pod refuses content that differs from what was sharded", async (t) => {
  const service = await startPodService(t);
  const { model, sha256 } = await uploadLayers(service);
  const id = await service.createJob(model, { ...unevaluated, parallelism: 2 });
  await waitForPodEnd(await service.startPod(id, { step: "shard", index: 0 }));
  const stored = blobPath(path.join(service.folder, "service"), sha256);
  const content = await readFile(stored);
  await chmod(stored, 0o644);
  await writeFile(stored, content.fill(0, (layers / 2) * layerBytes));
  const ends = await Promise.all(
    [0, 1].map(async (index) =>
      service.startPod(id, { step: "optimize", index }).then(async ({ ended }) => ended),
    ),
  );
  assert(ends.some(({ code }) => code === workerExit.failed));
  const { error } = await service.find(id);
  assert.equal(error?.code, "model_checksum_mismatch");
  assert.match(error.message, /^The model's \d+ bytes at byte \d+ have SHA-256 /);
});

test("pods of a file:// model read only their shares, and notice that it changed", async (t) => {
  const service = await startPodService(t);
  const { model, file } = await writeLayers(service);
  const recipe = { ...unevaluated, parallelism: 2 };
  const [whole, shared, changed] = [
    await service.createJob(model, recipe),
    await service.createJob(model, recipe),
    await service.createJob(model, recipe),
  ];
  await waitForPodEnd(await service.startPod(whole));
  await runSteps(service, shared, 2);
  assert.deepEqual(
    (await listJobArtifacts(service, shared))[0],
    (await listJobArtifacts(service, whole))[0],
  );
  const lines = await service.readLogTexts(shared);
  assert.match(lines.join("\n"), /\[fetch 1\/2\] Read 4\.\d+ MB of the model's 9\.\d+ MB/);
  await waitForPodEnd(await service.startPod(changed, { step: "shard", index: 0 }));
  const content = await readFile(file);
  await writeFile(file, content.fill(0, (layers / 2) * layerBytes));
  for (const index of [0, 1]) {
    const { code } = await waitForPodEnd(
      await service.startPod(changed, { step: "optimize", index }),
    );
    if (code === workerExit.failed) break;
  }
  assert.equal((await service.find(changed)).error?.code, "model_checksum_mismatch");
});

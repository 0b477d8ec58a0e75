import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { type TestContext } from "node:test";
import { strToU8, zipSync } from "fflate";
import { openCallerSamples } from "../../../src/engine/samples/open-samples.ts";
import type { TensorSignature } from "../../../src/engine/runtime/session-protocol.ts";

const directoryEntry = 0x02014b50;

function floatsHeader(shape: string): Uint8Array {
  const header =
    `{'descr': '<f4', 'fortran_order': False, 'shape': (${shape}), }`.padEnd(117) + "\n";
  const magic = Uint8Array.of(0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, 1, 0, header.length, 0);
  return Buffer.concat([magic, strToU8(header)]);
}

/** An archive whose directory says that each entry has so many bytes after its header. */
function archiveThatSays(files: Record<string, Uint8Array>, elementBytes: number): Buffer {
  const archive = Buffer.from(zipSync(files));
  for (let at = 0; at + 46 <= archive.length; at++) {
    if (archive.readUInt32LE(at) !== directoryEntry) continue;
    archive.writeUInt32LE(archive.readUInt32LE(at + 24) + elementBytes, at + 24);
  }
  return archive;
}

async function refusal(t: TestContext, archive: Uint8Array, names: readonly string[]) {
  const folder = await mkdtemp(join(tmpdir(), "samples-"));
  t.after(() => rm(folder, { recursive: true }));
  const path = join(folder, "data.npz");
  await writeFile(path, archive);
  const inputs = names.map((name): TensorSignature => {
    return { name, isTensor: true, type: "float32", shape: ["samples", "size"] };
  });
  const before = process.memoryUsage().rss;
  let message = "";
  await assert.rejects(openCallerSamples(path, inputs), (error: Error) => {
    message = error.message;
    return "code" in error && error.code === "evaluation_data_invalid";
  });
  assert.ok(process.memoryUsage().rss - before < 256 * 1024 ** 2, "memory stays small");
  return message;
}

test("tensors that are too large only together are refused, with the limit", async (t) => {
  const names = ["a", "b", "c"];
  const header = floatsHeader("1, 268435456");
  const files = Object.fromEntries(names.map((name) => [`${name}.npy`, header]));
  const message = await refusal(t, archiveThatSays(files, 2 ** 30), names);
  assert.match(message, /takes 3221225472 bytes; at most 2147483648 are allowed/);
});

test("a tensor that is too large alone is refused, with the limit", async (t) => {
  const files = { "a.npy": floatsHeader("1, 536870912") };
  const message = await refusal(t, archiveThatSays(files, 2 ** 31), ["a"]);
  assert.match(message, /a sample takes 2147483648 bytes; at most 1073741824 are allowed/);
});

test("an archive of thousands of entries is refused, with the limit", async (t) => {
  const files = Object.fromEntries(
    Array.from({ length: 5000 }, (_, i) => [`${i}.npy`, new Uint8Array()]),
  );
  assert.match(await refusal(t, zipSync(files), ["a"]), /more than 4096 entries/);
});

test("an entry of compressed zeros that says less than it holds is read no further", async (t) => {
  const zeros = Buffer.concat([floatsHeader("1, 4"), Buffer.alloc(64 << 20)]);
  const message = await refusal(t, zipSync({ "a.npy": zeros }), ["a"]);
  assert.match(message, /takes 16 bytes; its file holds 67108864/);
});

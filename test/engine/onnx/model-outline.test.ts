import assert from "node:assert/strict";
import { mkdtemp, open, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { test } from "node:test";
import { writeJsonTrailer } from "../../../src/engine/onnx/json-trailer.ts";
import { readOutline } from "../../../src/engine/onnx/model-outline.ts";

const sha256 = "a".repeat(64);

for (const name of ["../../inputs", "/etc/passwd", "parts/../x"]) {
  test(`readOutline() refuses external data at ${name}`, async (t) => {
    const folder = await mkdtemp(path.join(tmpdir(), "outline-"));
    t.after(() => rm(folder, { recursive: true }));
    const file = path.join(folder, "outline");
    const outline = (at: string) => ({
      modelSha256: sha256,
      bytes: 1,
      payloads: [],
      files: [{ path: at, sha256, bytes: 1 }],
    });
    for (const at of ["parts/x", name]) {
      await using handle = await open(file, "w");
      await writeJsonTrailer(handle, outline(at), 0);
      if (at === name) await assert.rejects(readOutline(file), /must be a relative path/);
      else assert.deepEqual(await readOutline(file), outline(at));
    }
  });
}

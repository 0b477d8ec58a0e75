import assert from "node:assert/strict";
import { test } from "node:test";
import { artifact } from "../../src/contract/jobs/artifact.ts";
import { findDownload } from "../../src/dashboard/shared/find-download.ts";

function files(...kinds: string[]) {
  const [bytes, sha256] = [1, "0".repeat(64)];
  return kinds.map((kind) => artifact.parse({ name: `${kind}.file`, kind, bytes, sha256 }));
}

test("a model is taken away as its ONNX file, a language model as its archive", () => {
  assert.equal(findDownload(files("model", "report")), "model.file");
  assert.equal(findDownload(files("model", "weights", "configuration", "archive")), "archive.file");
  assert.equal(findDownload(files("report")), undefined);
});

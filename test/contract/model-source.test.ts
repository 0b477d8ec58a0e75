import assert from "node:assert/strict";
import { test } from "node:test";
import { isSourceBeside, sourceBeside } from "../../src/contract/models/model-source.ts";

test("what is beside a source is in its folder", () => {
  const repository = "hf://acme/net@main";
  const besides = [
    ["https://example.com/nets/net.onnx?token=1", "https://example.com/nets/a%20b/c?token=1"],
    ["s3://models/net/", "s3://models/net/a b/c"],
    [repository, `${repository}/a b/c`],
    [`${repository}/`, `${repository}/a b/c`],
  ] as const;
  for (const [source, beside] of besides) {
    assert.equal(sourceBeside(source, "a b/c"), beside);
    assert.ok(isSourceBeside(beside, source));
  }
  for (const other of ["hf://acme/other@main/c", "hf://acme/net@other/c", `${repository}2/c`]) {
    assert.ok(!isSourceBeside(other, repository), other);
  }
});

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import test from "node:test";
import { demoModels } from "../../src/demo/demo-models.ts";
import { findModelProblem } from "../../src/dashboard/new-job/check-model-file.ts";
import { writeProduct } from "./write-product.ts";

test("models are taken, whatever their first fields are", async (t) => {
  const files = [...demoModels.map(({ file }) => file), await writeProduct(t)];
  for (const file of files) {
    const content = await readFile(file);
    assert.equal(findModelProblem(content.subarray(0, 65_536), content.length), undefined, file);
  }
});

test("texts, archives, pictures, empty files and halves of models are refused", async (t) => {
  const bytes = (text: string) => new TextEncoder().encode(text);
  const check = (content: Uint8Array) => findModelProblem(content, content.length);
  assert.equal(check(bytes("# A text\n".repeat(100))), "it is a text file");
  assert.equal(check(bytes("{\n}")), "it is a text file");
  assert.equal(check(Uint8Array.of(0x50, 0x4b, 3, 4, 0, 0)), "its content is of another format");
  assert.equal(
    check(Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 13, 10, 26, 10)),
    "its content is of another format",
  );
  assert.equal(check(new Uint8Array()), "it is empty");
  const model = await readFile(await writeProduct(t));
  assert.equal(check(model.subarray(0, 1000)), "it breaks off");
});

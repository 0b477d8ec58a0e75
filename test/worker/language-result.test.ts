import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { createReadStream } from "node:fs";
import { writeFile } from "node:fs/promises";
import path from "node:path";
import { buffer } from "node:stream/consumers";
import { test } from "node:test";
import { extract } from "tar-stream";
import { writeArchive } from "../../src/worker/language-result.ts";
import { makeFolder } from "../engine/quantize/compress.ts";

test("writeArchive() keeps every byte of large and small files", async () => {
  await using folder = await makeFolder();
  const contents = new Map(
    [5_000_003, 0, 7, 3_145_728].map((size, i) => [`${i}`, randomBytes(size)]),
  );
  for (const [name, content] of contents) await writeFile(path.join(folder.path, name), content);
  const names = [...contents.keys()];
  const { name, bytes } = await writeArchive(folder.path, names, new AbortController().signal);
  const file = createReadStream(path.join(folder.path, name));
  const found = new Map<string, Buffer>();
  for await (const entry of file.pipe(extract())) found.set(entry.header.name, await buffer(entry));
  assert.equal(file.bytesRead, bytes);
  assert.deepEqual(found, contents);
});

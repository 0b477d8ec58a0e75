import assert from "node:assert/strict";
import { glob, readFile } from "node:fs/promises";
import { join } from "node:path";
import test from "node:test";

const root = join(import.meta.dirname, "../..");

/** A source with its messages as they are shown: `…` for what differs, and texts that are joined as one. */
function readMessages(source: string): string {
  return source
    .replaceAll(/["'`]\s*\+\s*["'`]/g, "")
    .replaceAll(/\$\{[^{}]*\}/g, "…")
    .replaceAll('\\"', '"');
}

test("each message of docs/troubleshooting.md is one that the sources have", async () => {
  const page = await readFile(join(root, "docs/troubleshooting.md"), "utf8");
  const headings = Array.from(page.matchAll(/^### (.*)$/gm), ([, heading = ""]) => heading);
  assert.ok(headings.length > 20);
  const files = glob("{src,operator}/**/*.ts", { cwd: root });
  const sources = await Array.fromAsync(files, async (file) =>
    readMessages(await readFile(join(root, file), "utf8")),
  );
  // A message may be put together of several texts of a file, at what differs.
  const isShown = (heading: string) => {
    const parts = heading.split(/ ?… ?/);
    return sources.some((source) => parts.every((part) => source.includes(part)));
  };
  assert.deepEqual(
    headings.filter((heading) => !isShown(heading)),
    [],
  );
});

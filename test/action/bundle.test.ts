import assert from "node:assert/strict";
import { mkdtemp, readdir, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import test from "node:test";
import { bundleAction } from "../../scripts/bundle.ts";

const dist = path.join(import.meta.dirname, "../../dist");
const maxBundleBytes = 3_000_000;

test("dist is what the sources give", async (t) => {
  const fresh = await mkdtemp(path.join(tmpdir(), "bundle-"));
  t.after(() => rm(fresh, { recursive: true }));
  await bundleAction(fresh);
  assert.deepEqual((await readdir(dist)).toSorted(), (await readdir(fresh)).toSorted());
  for (const name of await readdir(fresh)) {
    const [present, wanted] = [
      await readFile(path.join(dist, name)),
      await readFile(path.join(fresh, name)),
    ];
    assert.ok(
      present.equals(wanted),
      `dist/${name} is out of date: run \`node scripts/bundle.ts\``,
    );
  }
});

test("the bundle is small and holds one copy of undici", async () => {
  const bundle = path.join(dist, "index.js");
  assert.ok((await stat(bundle)).size <= maxBundleBytes);
  const copies =
    (await readFile(bundle, "utf8")).match(/[\w@./-]*node_modules\/undici\/index\.js/g) ?? [];
  assert.equal(new Set(copies).size, 1);
});

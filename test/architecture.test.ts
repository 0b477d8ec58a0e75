import assert from "node:assert/strict";
import { access, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import test from "node:test";
import { parts } from "../scripts/parts.ts";

const root = join(import.meta.dirname, "..");
const page = await readFile(join(root, "ARCHITECTURE.md"), "utf8");

/** The paths that a line names; a file without a folder lies beside the one before it. */
function namedPaths(line: string): readonly string[] {
  const paths: string[] = [];
  for (const [, name = ""] of line.matchAll(/`([\w./-]+)`/g)) {
    if (/^(src|operator|scripts|test|docs)\//.test(name)) paths.push(name);
    else if (/^[\w-]+\.ts$/.test(name) && name !== "main.ts") {
      paths.push(join(parentFolder(paths.at(-1)), name));
    }
  }
  return paths;
}

function parentFolder(path = ""): string {
  return path.endsWith("/") ? path : dirname(path);
}

test("ARCHITECTURE.md and docs/security.md name files and folders that are there", async () => {
  const security = await readFile(join(root, "docs/security.md"), "utf8");
  const paths = `${page}\n${security}`.split("\n").flatMap(namedPaths);
  assert.ok(paths.length > 100);
  const missing = await Promise.all(
    paths.map(async (path) =>
      access(join(root, path)).then(
        () => [],
        () => [path],
      ),
    ),
  );
  assert.deepEqual(missing.flat(), []);
});

test("ARCHITECTURE.md has every part with what it may import, lowest first", () => {
  const rows = [...page.matchAll(/^\| `((?:src|operator)[\w/-]*)` +\| [^|]+ \| ([^|]+) \|$/gm)];
  const described = rows.map(([, part = "", imports = ""]) => [part, imports.trim()]);
  const expected = Object.entries(parts).map(([part, imports]) => [
    part,
    imports.join(", ") || "nothing",
  ]);
  assert.deepEqual(described, expected);
});

test("a part imports only parts above it", () => {
  const order = Object.keys(parts);
  const position = (name: string) => order.findIndex((part) => part.endsWith(name));
  for (const [part, imports] of Object.entries(parts)) {
    for (const name of imports) assert.ok(position(name) < order.indexOf(part), `${part}: ${name}`);
  }
});

test("a cell of ARCHITECTURE.md has at most 160 characters", () => {
  const cells = page.split("\n").flatMap((line) => (line.startsWith("|") ? line.split("|") : []));
  assert.deepEqual(
    cells.map((cell) => cell.trim()).filter((cell) => cell.length > 160),
    [],
  );
});

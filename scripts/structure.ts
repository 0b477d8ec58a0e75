import { glob, readFile } from "node:fs/promises";
import { join, sep } from "node:path";
import { findDefects } from "./structure/defects.ts";
import { type Figure, measureFigures } from "./structure/figures.ts";
import { parseSource, type Source } from "./structure/parse-source.ts";

const generated = /\/onnx_pb\./;

async function readSources(root: string): Promise<readonly Source[]> {
  const found = await Array.fromAsync(glob("{src,operator}/**/*.{ts,tsx}", { cwd: root }));
  const files = found.map((file) => file.replaceAll(sep, "/"));
  const written = files.filter((file) => !generated.test(file)).toSorted();
  return Promise.all(
    written.map(async (file) => parseSource(file, await readFile(join(root, file), "utf8"))),
  );
}

function formatTable(figures: readonly Figure[]): string {
  const rows = figures.map(({ name, value, models }) => [name, value, ...models]);
  return [["figure", "now", "hono", "remix"], ...rows]
    .map(([name = "", ...values]) =>
      [name.padEnd(40), ...values.map((each) => each.padStart(12))].join(" "),
    )
    .join("\n");
}

const sources = await readSources(process.argv[2] ?? join(import.meta.dirname, ".."));
process.stdout.write(`${formatTable(measureFigures(sources))}\n`);
for (const [defect, places] of findDefects(sources)) {
  for (const { file, line, name } of places) {
    process.stderr.write(`${file}:${line} ${defect}: ${name}\n`);
    process.exitCode = 1;
  }
}

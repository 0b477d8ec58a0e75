import { execFile } from "node:child_process";
import { glob, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { parseSync, Visitor } from "oxc-parser";

const exec = promisify(execFile);
const root = join(import.meta.dirname, "..");
const bin = join(root, "node_modules", ".bin");

/** Bundles the GitHub Action into a folder. The same sources give the same bytes. */
export async function bundleAction(folder: string): Promise<void> {
  // Inside the repository, where the bundler finds the packages.
  await mkdir(join(root, "build"), { recursive: true });
  const compiled = await mkdtemp(join(root, "build", "action-"));
  try {
    await exec(join(bin, "tsc"), [
      "--project",
      join(root, "tsconfig.action.json"),
      "--outDir",
      compiled,
      "--removeComments",
    ]);
    for await (const file of glob(join(compiled, "contract/**/*.js"))) {
      await writeFile(file, withoutDescriptions(file, await readFile(file, "utf8")));
    }
    const settings = ["--target", "es2022", "--license", "licenses.txt", "--no-cache", "--quiet"];
    // A relative path keeps the folder's name out of the bundle.
    await exec(join(bin, "ncc"), ["build", "action/main.js", "--out", folder, ...settings], {
      cwd: compiled,
    });
  } finally {
    await rm(compiled, { recursive: true });
  }
}

/** Whether a text of a table is for documents or the page, so that the action has no use for it. */
function isUnusedText(file: string, field: string): boolean {
  if (file.endsWith("jobs/warnings.js")) return true;
  if (file.endsWith("jobs/status-reasons.js")) return ["action", "setBy"].includes(field);
  return ["description", "summary"].includes(field);
}

/** Compiled schemas and tables without what documents them, which the action never shows. */
function withoutDescriptions(file: string, source: string): string {
  const cuts: { readonly start: number; readonly end: number; readonly with?: string }[] = [];
  new Visitor({
    CallExpression({ callee, end }) {
      const isDescription =
        callee.type === "MemberExpression" &&
        callee.property.type === "Identifier" &&
        callee.property.name === "describe";
      if (isDescription) cuts.push({ start: callee.object.end, end });
    },
    Property({ key, value }) {
      const isText = ["Literal", "TemplateLiteral", "BinaryExpression"].includes(value.type);
      const isDescription = key.type === "Identifier" && isUnusedText(file, key.name);
      if (isText && isDescription) cuts.push({ start: value.start, end: value.end, with: '""' });
    },
  }).visit(parseSync(file, source).program);
  return cuts
    .toSorted((one, other) => other.start - one.start)
    .reduce(
      (text, cut) => text.slice(0, cut.start) + (cut.with ?? "") + text.slice(cut.end),
      source,
    );
}

if (import.meta.main) await bundleAction(join(root, "dist"));

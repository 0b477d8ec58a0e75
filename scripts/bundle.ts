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
    const bundle = join(folder, "index.js");
    await writeFile(bundle, withoutDocComments(bundle, await readFile(bundle, "utf8")));
  } finally {
    await rm(compiled, { recursive: true });
  }
}

/** Fields of tables that documents and the page are made of, in which the action has no use for them. */
const descriptions: ReadonlySet<string> = new Set(["description", "summary"]);
/** The same of `statusReasonTable`. */
const reasonDescriptions: ReadonlySet<string> = new Set(["action", "setBy"]);

/** Compiled schemas and tables without what documents them, which the action never shows. */
function withoutDescriptions(file: string, source: string): string {
  const isReasons = file.endsWith("status-reasons.js");
  const unused = isReasons ? reasonDescriptions : descriptions;
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
      const isDescription = key.type === "Identifier" && unused.has(key.name);
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

/** Code of packages without comments of several lines; their licenses are in a file beside it. */
function withoutDocComments(file: string, source: string): string {
  return parseSync(file, source)
    .comments.filter(({ type, value }) => type === "Block" && value.includes("\n"))
    .toReversed()
    .reduce((text, { start, end }) => `${text.slice(0, start)}\n${text.slice(end)}`, source);
}

if (import.meta.main) await bundleAction(join(root, "dist"));

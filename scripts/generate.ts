import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs, promisify } from "node:util";
import { openApiDocument } from "../src/contract/openapi.ts";
import { referencePage } from "./reference-page.ts";

const exec = promisify(execFile);
const root = join(import.meta.dirname, "..");

/** Files made from the contract or from a published schema, by path from the repository's root. */
async function generatedFiles(): Promise<ReadonlyMap<string, string>> {
  return new Map([
    ["docs/openapi.json", `${JSON.stringify(openApiDocument(), undefined, 2)}\n`],
    ["docs/reference.md", referencePage()],
    ...(await onnxBindings()),
  ]);
}

/** Bindings of the official ONNX schema, which lies beside them. */
async function onnxBindings(): Promise<[string, string][]> {
  const folder = "src/engine/onnx";
  const out = await mkdtemp(join(tmpdir(), "bindings-"));
  try {
    const plugin = { local: join(root, "node_modules/.bin/protoc-gen-es"), out, opt: "target=js+dts" };
    const template = JSON.stringify({ version: "v2", plugins: [plugin] });
    await exec(join(root, "node_modules/.bin/buf"), ["generate", "--template", template, folder], { cwd: root });
    const files = ["onnx_pb.js", "onnx_pb.d.ts"];
    return await Promise.all(
      files.map(async (file): Promise<[string, string]> => [
        `${folder}/${file}`,
        await readFile(join(out, file), "utf8"),
      ]),
    );
  } finally {
    await rm(out, { recursive: true });
  }
}

const { values } = parseArgs({ options: { check: { type: "boolean", default: false } } });
for (const [path, content] of await generatedFiles()) {
  const file = join(root, path);
  if (!values.check) {
    await writeFile(file, content);
    continue;
  }
  const present = await readFile(file, "utf8").catch(() => "");
  if (present !== content) {
    process.stderr.write(`${path} is not what the contract says: run \`npm run generate\`\n`);
    process.exitCode = 1;
  }
}

import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs, promisify } from "node:util";
import { openApiDocument } from "../src/contract/openapi/openapi-document.ts";
import { actionMetadata } from "./action-metadata.ts";
import { chartFiles } from "./chart-files.ts";
import { exampleReports } from "./example-reports.ts";
import { resourceDefinitions } from "./resource-definitions.ts";
import { referencePage } from "./reference-page.ts";

const exec = promisify(execFile);
const root = join(import.meta.dirname, "..");

/** Files made from the contract, a published schema or AssemblyScript sources, by path from the repository's root. */
async function generatedFiles(): Promise<ReadonlyMap<string, string>> {
  return new Map([
    ["docs/openapi.json", `${JSON.stringify(openApiDocument(), undefined, 2)}\n`],
    ["docs/reference.md", referencePage()],
    ["action.yml", actionMetadata()],
    ...(await exampleReports(root)),
    ...resourceDefinitions(),
    ...chartFiles(resourceDefinitions()),
    ...(await onnxBindings()),
    [
      "src/engine/quantize/kernels/simd-module.ts",
      await kernelModule("kernels.ts", "simdModule", [
        "--initialMemory",
        "8",
        "--maximumMemory",
        "8",
      ]),
    ],
    [
      "src/engine/quantize/kernels/second-order-module.ts",
      await kernelModule("second-order.ts", "secondOrderModule", ["--initialMemory", "1"]),
    ],
  ]);
}

/** Bindings of the official ONNX schema, which lies beside them. */
async function onnxBindings(): Promise<[string, string][]> {
  const folder = "src/engine/onnx";
  const out = await mkdtemp(join(tmpdir(), "bindings-"));
  try {
    const plugin = {
      local: join(root, "node_modules/.bin/protoc-gen-es"),
      out,
      opt: "target=js+dts",
    };
    const template = JSON.stringify({ version: "v2", plugins: [plugin] });
    await exec(join(root, "node_modules/.bin/buf"), ["generate", "--template", template, folder], {
      cwd: root,
    });
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

/** Kernels compiled from the AssemblyScript sources beside the file. */
async function kernelModule(source: string, name: string, memory: string[]): Promise<string> {
  const folder = "src/engine/quantize/kernels/assembly";
  const out = await mkdtemp(join(tmpdir(), "kernels-"));
  try {
    const file = join(out, "simd.wasm");
    const settings = ["--runtime", "stub", "--enable", "simd", "-O3", "--noAssert", ...memory];
    const input = `${folder}/${source}`;
    await exec(join(root, "node_modules/.bin/asc"), [input, "-o", file, ...settings], {
      cwd: root,
    });
    const module = await readFile(file, "base64");
    return `/** The kernels of assembly/${source}, compiled by \`npm run generate\`: a WebAssembly module as base64. */
export const ${name} =
  "${module}";
`;
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
    process.stderr.write(`${path} is not what its source says: run \`npm run generate\`\n`);
    process.exitCode = 1;
  }
}

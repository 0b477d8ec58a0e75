import assert from "node:assert/strict";
import { link, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { type TestContext } from "node:test";
import {
  TensorProto_DataLocation,
  TensorProto_DataType,
} from "../../../src/engine/onnx/onnx_pb.js";
import { openModel } from "../../../src/engine/onnx/open-model.ts";
import { tensorInfo, node, writeTinyModel } from "../../support/tiny-model.ts";

// Weaknesses of ONNX's own Python package, each as a model that it took.

type Entry = { readonly key: string; readonly value: string };

const secret = "the secret of the host, longer than sixteen bytes";

/** A folder with a model whose only weight is where the entries say, and a secret beside it. */
async function writeHostileModel(t: TestContext, entries: readonly Entry[]): Promise<string> {
  const outside = await mkdtemp(join(tmpdir(), "cve-"));
  t.after(() => rm(outside, { recursive: true }));
  await writeFile(join(outside, "secret.txt"), secret);
  const folder = join(outside, "model");
  await mkdir(join(folder, "sub"), { recursive: true });
  await writeFile(join(folder, "weights.bin"), new Uint8Array(64));
  await writeTinyModel(join(folder, "model.onnx"), {
    input: [tensorInfo("x", [1, 2])],
    output: [tensorInfo("y", [1, 2])],
    node: [node("MatMul", ["x", "w"], ["y"])],
    initializer: [
      {
        name: "w",
        dims: [2n, 2n],
        dataType: TensorProto_DataType.FLOAT,
        dataLocation: TensorProto_DataLocation.EXTERNAL,
        externalData: [...entries],
      },
    ],
  });
  return folder;
}

const at = (location: string): Entry[] => [{ key: "location", value: location }];

const traversals: readonly [cve: string, location: string][] = [
  ["CVE-2022-25882", "../secret.txt"],
  ["CVE-2022-25882", "../../../../../../etc/passwd"],
  ["CVE-2022-25882", "/etc/passwd"],
  ["CVE-2024-27318", "sub/../../secret.txt"],
  ["CVE-2024-27318", "./../secret.txt"],
  ["CVE-2024-27318", ".//../secret.txt"],
  ["CVE-2025-51480", "sub/../../overwritten.bin"],
];

for (const [cve, location] of traversals) {
  test(`${cve}: external data at ${location} is refused, and nothing is read or written`, async (t) => {
    const folder = await writeHostileModel(t, at(location));
    await assert.rejects(openModel(join(folder, "model.onnx"), 1e6), {
      code: "external_data_refused",
    });
    assert.equal(await readFile(join(folder, "../secret.txt"), "utf8"), secret);
    await assert.rejects(readFile(join(folder, "../overwritten.bin")), { code: "ENOENT" });
  });
}

const links: readonly [
  cve: string,
  what: string,
  location: string,
  make: (folder: string) => Promise<void>,
][] = [
  [
    "CVE-2026-27489",
    "a symbolic link",
    "data.bin",
    (folder) => symlink("../secret.txt", join(folder, "data.bin")),
  ],
  [
    "CVE-2026-34447",
    "a symbolic link in the path",
    "sub/up/secret.txt",
    (folder) => symlink("../..", join(folder, "sub", "up")),
  ],
  [
    "CVE-2026-34446",
    "a hard link",
    "data.bin",
    (folder) => link(join(folder, "../secret.txt"), join(folder, "data.bin")),
  ],
];

for (const [cve, what, location, make] of links) {
  test(`${cve}: external data behind ${what} is refused`, async (t) => {
    const folder = await writeHostileModel(t, at(location));
    await make(folder);
    const file = join(folder, "model.onnx");
    await assert.rejects(openModel(file, 1e6), { code: "external_data_refused" });
  });
}

const attributes: readonly [what: string, entries: Entry[], code: string | undefined][] = [
  ["a negative length", [{ key: "length", value: "-1" }], "model_invalid"],
  ["a length of 9 petabytes", [{ key: "length", value: "9000000000000000" }], "model_invalid"],
  ["an offset beyond the file", [{ key: "offset", value: "1000000000000" }], "external_data_short"],
  ["an offset that is no number", [{ key: "offset", value: "__class__" }], "model_invalid"],
  [
    "names of properties",
    [
      { key: "__proto__", value: "x" },
      { key: "basepath", value: "/etc" },
    ],
    undefined,
  ],
];

for (const [what, entries, code] of attributes) {
  test(`CVE-2026-34445: ${what} in external data changes nothing but its own tensor`, async (t) => {
    const folder = await writeHostileModel(t, [...at("weights.bin"), ...entries]);
    const opened = openModel(join(folder, "model.onnx"), 1e6);
    if (code !== undefined) {
      await assert.rejects(opened, { code });
      return;
    }
    const { payloads } = await opened;
    assert.deepEqual(
      payloads.map((payload) => payload.kind === "file" && payload.path),
      [join(folder, "weights.bin")],
    );
    assert.equal(Object.getPrototypeOf({}), Object.prototype);
  });
}

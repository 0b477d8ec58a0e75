import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { strToU8, zipSync } from "fflate";
import { openCallerSamples } from "../../../src/engine/samples/open-samples.ts";
import type { TensorSignature } from "../../../src/engine/runtime/session-protocol.ts";
import {
  elementTypeNames,
  elementTypes,
  tensorNumbers,
} from "../../../src/engine/runtime/tensor-data.ts";
import { pythonMissing, runPython } from "../../support/python.ts";

let folder = "";
before(async () => (folder = await mkdtemp(join(tmpdir(), "caller-samples-"))));
after(() => rm(folder, { recursive: true }));

function input(name: string, shape: TensorSignature["shape"], type = "float32"): TensorSignature {
  return { name, isTensor: true, type, shape };
}

function npy(header: string, content: ArrayLike<number> = []): Uint8Array {
  const text = strToU8(header.padEnd(117) + "\n");
  const magic = [0x93, ...strToU8("NUMPY"), 1, 0, text.length & 255, text.length >> 8];
  return Uint8Array.from([...magic, ...text, ...Array.from(content)]);
}

function floatsNpy(shape: string, values: number[], descr = "<f4", fortran = "False"): Uint8Array {
  const header = `{'descr': '${descr}', 'fortran_order': ${fortran}, 'shape': (${shape}), }`;
  return npy(header, new Uint8Array(Float32Array.from(values).buffer));
}

async function archive(files: Record<string, Uint8Array>): Promise<string> {
  const path = join(folder, "samples.npz");
  await writeFile(path, zipSync(files));
  return path;
}

async function readAll(path: string, inputs: TensorSignature[]) {
  await using opened = await openCallerSamples(path, inputs);
  return await Array.fromAsync(opened.samples, (sample) =>
    sample.map(({ name, type, shape, bytes }) => ({
      name,
      shape,
      values: Array.from(tensorNumbers({ type, bytes })),
    })),
  );
}

async function refusal(
  files: Record<string, Uint8Array>,
  inputs: TensorSignature[],
): Promise<string> {
  const path = await archive(files);
  const error = await readAll(path, inputs).then(
    () => assert.fail("The data was accepted"),
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof Error && "code" in error);
  assert.equal(error.code, "evaluation_data_invalid", error.message);
  return error.message;
}

test("openCallerSamples() cuts arrays along their first axis into samples", async () => {
  const path = await archive({
    "x.npy": floatsNpy("2, 1, 2", [1, 2, 3, 4]),
    "folder/y:0.npy": floatsNpy("2,", [5, 6]),
  });
  assert.deepEqual(await readAll(path, [input("x", ["batch", 2]), input("folder/y:0", [])]), [
    [
      { name: "x", shape: [1, 2], values: [1, 2] },
      { name: "folder/y:0", shape: [], values: [5] },
    ],
    [
      { name: "x", shape: [1, 2], values: [3, 4] },
      { name: "folder/y:0", shape: [], values: [6] },
    ],
  ]);
});

test("openCallerSamples() takes an array of the input's rank for samples of batch size 1", async () => {
  const path = await archive({ "x.npy": floatsNpy("2, 2", [1, 2, 3, 4]) });
  const samples = await readAll(path, [input("x", ["", 2])]);
  assert.deepEqual(
    samples.map(([first]) => first?.shape),
    [
      [1, 2],
      [1, 2],
    ],
  );
});

test("openCallerSamples() reads samples of no elements", async () => {
  const path = await archive({
    "x.npy": floatsNpy("2, 1, 0", []),
    "y.npy": floatsNpy("2, 1", [1, 2]),
  });
  const samples = await readAll(path, [input("x", [1, "past"]), input("y", [1])]);
  assert.deepEqual(samples.length, 2);
});

for (const save of ["savez", "savez_compressed"]) {
  test(
    `openCallerSamples() reads every dtype that numpy.${save} writes`,
    { skip: pythonMissing },
    async () => {
      const path = join(folder, `${save}.npz`);
      const arrays = elementTypeNames.map(
        (type) => `"${type}": np.array([[0, 1], [1, 0]], "${elementTypes[type].dtype}")`,
      );
      await runPython(`import sys, numpy as np; np.${save}(sys.argv[1], **{${arrays.join()}})`, [
        path,
      ]);
      const samples = await readAll(
        path,
        elementTypeNames.map((type) => input(type, [2], type)),
      );
      assert.equal(samples.length, 2);
      for (const { name, values } of samples[1] ?? []) assert.deepEqual(values, [1, 0], name);
    },
  );
}

const twoFloats = floatsNpy("1, 2", [1, 2]);
const wrong: [what: string, files: Record<string, Uint8Array>, message: RegExp][] = [
  ["an array is missing", {}, /no array "x"; the model's inputs are "x"/],
  [
    "an array is not an input",
    { "x.npy": twoFloats, "z.npy": twoFloats },
    /"z" is not an input of the model/,
  ],
  [
    "the shape does not fit",
    { "x.npy": floatsNpy("1, 3", [1, 2, 3]) },
    /"x" has shape \[1,3\] and dtype <f4; the model takes float32 of shape \[samples,2\]/,
  ],
  [
    "the dtype does not fit",
    { "x.npy": floatsNpy("1, 1", [1, 2], "<f8") },
    /dtype <f8; the model takes float32/,
  ],
  ["the bytes are big-endian", { "x.npy": floatsNpy("1, 2", [1, 2], ">f4") }, /little-endian/],
  [
    "the array is in Fortran order",
    { "x.npy": floatsNpy("1, 2", [1, 2], "<f4", "True") },
    /Fortran order/,
  ],
  ["the array has no samples", { "x.npy": floatsNpy("0, 2", []) }, /shape \[0,2\]/],
  [
    "the file is shorter than its shape",
    { "x.npy": floatsNpy("2, 2", [1, 2]) },
    /takes 16 bytes; its file holds 8/,
  ],
  [
    "the file is not an .npy file",
    { "x.npy": strToU8("hello, this is a text") },
    /"x.npy" cannot be read: It is not an .npy/,
  ],
  [
    "the header is a program",
    { "x.npy": npy("__import__('os').system('true')") },
    /header cannot be understood/,
  ],
  [
    "the dtype is structured",
    { "x.npy": npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }") },
    /header cannot be understood/,
  ],
  [
    "the shape is beyond all memory",
    { "x.npy": floatsNpy("9007199254740991, 2", []) },
    /shape is too large/,
  ],
];
for (const [what, files, message] of wrong) {
  test(`openCallerSamples() refuses data where ${what}`, async () => {
    assert.match(await refusal(files, [input("x", [2])]), message);
  });
}

test("openCallerSamples() refuses arrays with different numbers of samples", async () => {
  const files = { "x.npy": twoFloats, "y.npy": floatsNpy("2, 2", [1, 2, 3, 4]) };
  assert.match(
    await refusal(files, [input("x", [2]), input("y", [2])]),
    /"y" has 2 samples and array "x" has 1/,
  );
});

test("openCallerSamples() refuses a file that is not an archive, is cut short or has a damaged directory", async () => {
  const whole = await readFile(await archive({ "x.npy": twoFloats }));
  const path = join(folder, "damaged.npz");
  const damages = [Buffer.alloc(0), Buffer.from("text"), whole.subarray(0, -1), whole.subarray(40)];
  for (const bytes of damages) {
    await writeFile(path, bytes);
    await assert.rejects(readAll(path, [input("x", [2])]), { code: "evaluation_data_invalid" });
  }
});

test("openCallerSamples() never fails otherwise than with evaluation_data_invalid on flipped bytes", async () => {
  const files = {
    "x.npy": floatsNpy(
      "64, 2",
      Array.from({ length: 128 }, (_, index) => index),
    ),
  };
  const whole = await readFile(await archive(files));
  const path = join(folder, "flipped.npz");
  for (let index = 0; index < whole.length; index += 1) {
    const bytes = Buffer.from(whole);
    bytes.writeUInt8(bytes.readUInt8(index) ^ (1 << (index % 8)), index);
    await writeFile(path, bytes);
    const failure = await readAll(path, [input("x", [2])]).then(
      () => undefined,
      (reason: unknown) => reason,
    );
    if (failure !== undefined)
      assert.equal(
        failure instanceof Error && "code" in failure && failure.code,
        "evaluation_data_invalid",
        JSON.stringify(failure),
      );
  }
});

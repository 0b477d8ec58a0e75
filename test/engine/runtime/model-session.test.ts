import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { writeProductModel } from "../../../src/engine/calibrate/write-product-model.ts";
import { createNormal, createRandom } from "../../../src/engine/samples/generate-sample.ts";
import { ModelSession } from "../../../src/engine/runtime/model-session.ts";
import type { TensorData } from "../../../src/engine/runtime/tensor-data.ts";
import { TensorProto_DataType } from "../../../src/engine/onnx/onnx_pb.js";
import { realModel } from "../../support/real-models.ts";
import { node, tensorInfo, floatInitializer, writeTinyModel } from "../../support/tiny-model.ts";
import { until } from "../../support/until.ts";

let folder = "";
before(async () => (folder = await mkdtemp(join(tmpdir(), "model-session-"))));
after(() => rm(folder, { recursive: true }));

const options = {
  executionProvider: "cpu",
  threads: 1,
  signal: new AbortController().signal,
} as const;
const x: TensorData = { name: "x", type: "float32", shape: [1, 8], bytes: new Uint8Array(32) };

async function packedOutputModel(): Promise<string> {
  const path = join(folder, "packed.onnx");
  const zero = {
    name: "zero",
    dataType: TensorProto_DataType.INT4,
    dims: [],
    rawData: Uint8Array.of(0),
  };
  await writeTinyModel(
    path,
    {
      input: [tensorInfo("x", [1, 8])],
      output: [tensorInfo("codes", [1, 8], TensorProto_DataType.INT4)],
      initializer: [floatInitializer("scale", [], () => 0.5), zero],
      node: [node("QuantizeLinear", ["x", "scale", "zero"], ["codes"])],
    },
    { opset: 21 },
  );
  return path;
}

test("Products of columns are summed up over all rows that count", async () => {
  const path = join(folder, "rows.onnx");
  const columns = 640;
  await writeTinyModel(path, {
    input: [tensorInfo("x", ["rows", columns])],
    output: [tensorInfo("y", ["rows", columns])],
    node: [node("Neg", ["x"], ["y"])],
  });
  await using session = await ModelSession.open(path, options);
  const file = join(folder, "sums");
  // Of the first 600 columns, more than a panel has, with all.
  const segments = [{ first: 0, rows: 600, size: columns }];
  const rows = [{ path: file, values: ["y"], columns, segments }];
  await session.beginSums({ modelPath: await writeProductModel(folder), rows });
  // More rows than are gathered at once.
  const normal = createNormal(createRandom(1));
  const samples = [900, 600].map((count) => Float32Array.from({ length: count * columns }, normal));
  const isUsed = (row: number) => Number(row % 5 > 0);
  for (const values of samples) {
    const count = values.length / columns;
    const shape = [count, columns];
    const sample: TensorData = { ...x, shape, bytes: new Uint8Array(values.buffer) };
    const mask = Uint8Array.from({ length: count }, (_, row) => isUsed(row));
    assert.deepEqual(await session.run([sample], [], { summed: ["y"], mask }), []);
  }
  const written = await session.writeSums();
  assert.deepEqual(written, [{ path: file, rows: 1200, isFinite: true }]);
  const sums = new Float32Array((await readFile(file)).buffer);
  assert.equal(sums.length, 600 * columns);
  for (const first of [0, 1, 299, 300, 301, 599]) {
    for (const second of [0, 299, 300, 599, 600, 639]) {
      let sum = 0;
      for (const values of samples) {
        for (let row = 0; row * columns < values.length; row++) {
          const start = row * columns;
          const product = Number(values[start + first]) * Number(values[start + second]);
          sum += isUsed(row) * product;
        }
      }
      const found = Number(sums[first * columns + second]);
      assert.ok(Math.abs(found - sum) < 1e-3, `${first}, ${second}: ${found}, and not ${sum}`);
    }
  }
});

test(
  "runs that are timed leave none of their outputs in memory",
  { skip: process.platform !== "linux" },
  async () => {
    const path = join(folder, "large.onnx");
    const shape = [2048, 640];
    await writeTinyModel(path, {
      input: [tensorInfo("x", shape)],
      output: [tensorInfo("y", shape)],
      node: [node("Neg", ["x"], ["y"])],
    });
    await using session = await ModelSession.open(path, options);
    const outputBytes = 4 * 2048 * 640;
    await session.run([{ ...x, shape, bytes: new Uint8Array(outputBytes) }], ["y"]);
    const { peakBytes: before } = await session.readMemory();
    for (let run = 0; run < 30; run++) await session.timeRun();
    const added = (await session.readMemory()).peakBytes - before;
    assert.ok(added < 4 * outputBytes, `${added} bytes more after 30 outputs of ${outputBytes}`);
  },
);

test("run() reports a native abort of the runtime and leaves the caller alive", async () => {
  await using session = await ModelSession.open(await packedOutputModel(), options);
  await assert.rejects(session.run([x], ["codes"]), /The runtime's process was ended by SIGABRT/);
  await assert.rejects(session.timeRun(), /The runtime's process was ended by SIGABRT/);
});

test("run() gives the runtime's message for inputs that do not fit, and can be called again", async () => {
  await using session = await ModelSession.open(realModel("voice-v5"), options);
  await assert.rejects(session.run([x], ["output"]), /Invalid input name|Missing Input|input/i);
  assert.equal(session.signature.outputs.length, 2);
  assert.ok((await session.readMemory()).peakBytes > 0);
});

test(
  "a session's process ends when the process that opened it is killed",
  { skip: process.platform !== "linux" },
  async () => {
    const source = new URL("../../../src/engine/runtime/model-session.ts", import.meta.url).href;
    const script = `
    import { ModelSession } from ${JSON.stringify(source)};
    const signal = new AbortController().signal;
    await ModelSession.open(${JSON.stringify(realModel("voice-v5"))}, { executionProvider: "cpu", threads: 1, signal });
    console.log("open");
    setInterval(() => undefined, 1000);
  `;
    const parent = spawn(process.execPath, ["--input-type=module-typescript", "--eval", script], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    await once(parent.stdout, "data");
    const children = await readFile(`/proc/${parent.pid}/task/${parent.pid}/children`, "utf8");
    const [child = ""] = children.trim().split(" ");
    assert.ok(existsSync(`/proc/${child}`));
    parent.kill("SIGKILL");
    await once(parent, "exit");
    await until("the child is gone", () => !existsSync(`/proc/${child}`));
  },
);

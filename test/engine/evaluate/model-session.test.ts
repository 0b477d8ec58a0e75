import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { ModelSession } from "../../../src/engine/evaluate/model-session.ts";
import type { TensorData } from "../../../src/engine/evaluate/tensor-data.ts";
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

test("run() reports a native abort of the runtime and leaves the caller alive", async () => {
  await using session = await ModelSession.open(await packedOutputModel(), options);
  await assert.rejects(session.run([x], ["codes"]), /The runtime's process was ended by SIGABRT/);
  await assert.rejects(session.timeRun(), /The runtime's process was ended by SIGABRT/);
});

test("run() gives the runtime's message for inputs that do not fit, and can be called again", async () => {
  await using session = await ModelSession.open(realModel("voice-v5"), options);
  await assert.rejects(session.run([x], ["output"]), /Invalid input name|Missing Input|input/i);
  assert.equal(session.signature.outputs.length, 2);
  assert.ok((await session.readPeakMemory()) > 0);
});

test(
  "a session's process ends when the process that opened it is killed",
  { skip: process.platform !== "linux" },
  async () => {
    const source = new URL("../../../src/engine/evaluate/model-session.ts", import.meta.url).href;
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

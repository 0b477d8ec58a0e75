import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { test } from "node:test";
import { labelRuntimeErrors } from "../../../src/engine/runtime/label-runtime-errors.ts";
import { TensorProto_DataType } from "../../../src/engine/onnx/onnx_pb.js";
import { ModelSession } from "../../../src/engine/runtime/model-session.ts";
import type { Sample } from "../../../src/engine/runtime/tensor-data.ts";
import { node, tensorInfo, writeTinyModel } from "../../support/tiny-model.ts";

test("of an error of CUDA only what CUDA said is left", async () => {
  // As ONNX Runtime 1.30 said it on an H200.
  const message =
    "/onnxruntime_src/onnxruntime/core/providers/cuda/cuda_call.cc:146 std::conditional_t<THRW, " +
    "void, onnxruntime::common::Status> onnxruntime::CudaCall(ERRTYPE, const char*) [with ERRTYPE " +
    "= cudaError; bool THRW = true] CUDA failure 304: OS call failed or operation not supported " +
    "on this OS ; GPU=-1 ; hostname=vm ; file=/onnxruntime_src/cuda_execution_provider.cc ; " +
    "line=352 ; expr=cudaSetDevice(info_.device_id); ";
  const failing = Promise.reject(new Error(message));
  await assert.rejects(labelRuntimeErrors("original", failing, new AbortController().signal), {
    code: "evaluation_failed",
    message:
      "The original could not be run: CUDA failure 304: OS call failed or operation not supported " +
      "on this OS",
  });
});

test("a value that does not fit into memory is said to be so", async (t) => {
  const folder = await mkdtemp(path.join(tmpdir(), "memory-"));
  t.after(() => rm(folder, { recursive: true }));
  const file = path.join(folder, "large.onnx");
  await writeTinyModel(file, {
    input: [tensorInfo("x", [1]), tensorInfo("sizes", [2], TensorProto_DataType.INT64)],
    output: [tensorInfo("y", ["n", "m"])],
    node: [node("Expand", ["x", "sizes"], ["y"])],
  });
  const { signal } = new AbortController();
  await using session = await ModelSession.open(file, {
    executionProvider: "cpu",
    threads: 1,
    signal,
  });
  // More than processes can address.
  const sizes = new Uint8Array(BigInt64Array.of(2n ** 24n, 2n ** 24n).buffer);
  const sample: Sample = [
    { name: "x", type: "float32", shape: [1], bytes: new Uint8Array(4) },
    { name: "sizes", type: "int64", shape: [2], bytes: sizes },
  ];
  await assert.rejects(labelRuntimeErrors("result", session.run(sample, ["y"]), signal), {
    code: "evaluation_failed",
    message: "The result could not be run: there is no memory for a buffer of 1126 TB",
  });
});

test("a machine without the CUDA provider is said to be so", async () => {
  // As ONNX Runtime 1.30 says it without a GPU, and without a library that the provider needs.
  const message = "OrtSessionOptionsAppendExecutionProvider_Cuda: Failed to load shared library";
  const failing = Promise.reject(new Error(message));
  await assert.rejects(labelRuntimeErrors("original", failing, new AbortController().signal), {
    code: "evaluation_failed",
    message:
      "The original could not be run: ONNX Runtime cannot load its CUDA provider on this machine",
  });
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { labelRuntimeErrors } from "../../../src/engine/runtime/label-runtime-errors.ts";

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

test("a GPU or a machine with too little memory is said to be so", async () => {
  const message =
    "Exception during initialization: /onnxruntime_src/onnxruntime/core/framework/bfc_arena.cc:376 " +
    "void* onnxruntime::BFCArena::AllocateRawInternal(size_t, bool, onnxruntime::Stream*) Failed " +
    "to allocate memory for requested buffer of size 4194304000";
  const failing = Promise.reject(new Error(message));
  await assert.rejects(labelRuntimeErrors("result", failing, new AbortController().signal), {
    code: "evaluation_failed",
    message: "The result could not be run: there is no memory for a buffer of 4.19 GB",
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

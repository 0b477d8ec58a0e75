import { Worker } from "node:worker_threads";
import { InferenceSession, Tensor } from "onnxruntime-node";
import { sessionRequest, type SessionReply, type SessionRequest } from "./session-protocol.ts";
import { elementType, rawTensorElements, type TensorData } from "./tensor-data.ts";
import { readPeakMemoryBytes } from "./read-peak-memory-bytes.ts";

interface OpenSession {
  session: InferenceSession;
  inputs: Record<string, Tensor>;
  outputs: string[];
}

let openSession: OpenSession | undefined;

function requireOpenSession(): OpenSession {
  if (!openSession) throw new Error("No model is open");
  return openSession;
}

async function createInferenceSession(
  request: Extract<SessionRequest, { do: "open" }>,
): Promise<SessionReply> {
  const session = await InferenceSession.create(request.modelPath, {
    executionProviders:
      request.executionProvider === "cpu" ? ["cpu"] : [request.executionProvider, "cpu"],
    intraOpNumThreads: request.threads,
    graphOptimizationLevel: request.optimize ? "all" : "disabled",
    ...(request.profilePrefix !== undefined && {
      enableProfiling: true,
      profileFilePrefix: request.profilePrefix,
    }),
    logSeverityLevel: 3,
    // Threads that spin after a run would slow the other model down, which runs next.
    extra: { session: { force_spinning_stop: "1" } },
  });
  openSession = { session, inputs: {}, outputs: [] };
  const signature = {
    inputs: session.inputMetadata.map(copyValueMetadata),
    outputs: session.outputMetadata.map(copyValueMetadata),
  };
  return { is: "open", signature };
}

function copyValueMetadata(value: InferenceSession.ValueMetadata) {
  const { name } = value;
  return value.isTensor
    ? { name, isTensor: value.isTensor, type: value.type, shape: [...value.shape] }
    : { name, isTensor: value.isTensor };
}

/**
 * The runtime reads inputs where they lie, and some of its kernels round otherwise on memory that is less aligned than its own.
 * Resizable buffers begin at a page.
 */
function createAlignedTensor({ type, shape, bytes }: TensorData): Tensor {
  const aligned = new Uint8Array(
    new ArrayBuffer(bytes.length, { maxByteLength: bytes.length }),
    0,
    bytes.length,
  );
  aligned.set(bytes);
  return new Tensor(type, rawTensorElements({ type, bytes: aligned }), shape);
}

async function runSession(): Promise<TensorData[]> {
  const { session, inputs, outputs } = requireOpenSession();
  const results = await session.run(inputs, outputs);
  return Object.entries(results).map(([name, { type, dims, data }]) => {
    if (!ArrayBuffer.isView(data)) throw new Error(`Output "${name}" has elements of type ${type}`);
    return {
      name,
      type: elementType.parse(type),
      shape: [...dims],
      bytes: new Uint8Array(data.buffer, data.byteOffset, data.byteLength),
    };
  });
}

async function timeSessionRun(): Promise<number> {
  const { session, inputs, outputs } = requireOpenSession();
  const start = performance.now();
  await session.run(inputs, outputs);
  return performance.now() - start;
}

async function handleSessionRequest(request: SessionRequest): Promise<SessionReply> {
  switch (request.do) {
    case "open":
      return createInferenceSession(request);
    case "run":
      requireOpenSession().inputs = Object.fromEntries(
        request.inputs.map((input) => [input.name, createAlignedTensor(input)]),
      );
      requireOpenSession().outputs = request.outputs;
      return { is: "outputs", tensors: await runSession() };
    case "time":
      return { is: "time", milliseconds: await timeSessionRun() };
    case "measure-memory":
      return { is: "memory", peakBytes: await readPeakMemoryBytes() };
    case "end-profile":
      requireOpenSession().session.endProfiling();
      return { is: "profiled" };
  }
}

// ONNX Runtime's binding takes a Float16Array for empty; where the class is absent, half precision goes in as its bits.
Reflect.deleteProperty(globalThis, "Float16Array");

// A run blocks this thread, so another one watches for the end of the parent.
new Worker(new URL("exit-with-parent.ts", import.meta.url)).unref();

process.on("message", (message) => {
  handleSessionRequest(sessionRequest.parse(message)).then(
    (reply) => process.send?.(reply),
    (error: unknown) =>
      process.send?.({
        is: "error",
        message: error instanceof Error ? error.message : String(error),
      }),
  );
});

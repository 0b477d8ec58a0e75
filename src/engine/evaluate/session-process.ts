import { Worker } from "node:worker_threads";
import { InferenceSession, Tensor } from "onnxruntime-node";
import { errorMessage } from "../../log/error-message.ts";
import { sessionRequest, type SessionReply, type SessionRequest } from "./session-protocol.ts";
import { elementType, rawTensorElements, type TensorData } from "./tensor-data.ts";
import { readPeakMemoryBytes, resetPeakMemory } from "./read-peak-memory-bytes.ts";

type OpenRequest = Extract<SessionRequest, { do: "open" }>;

interface OpenSession {
  session: InferenceSession;
  inputs: Record<string, Tensor>;
  outputs: string[];
}

let openSession: OpenSession | undefined;
/** Resident memory without a model. */
let baselineBytes = 0;

function requireOpenSession(): OpenSession {
  if (!openSession) throw new Error("No model is open");
  return openSession;
}

async function createInferenceSession(request: OpenRequest): Promise<SessionReply> {
  baselineBytes = resetPeakMemory();
  const session = await InferenceSession.create(request.modelPath, sessionOptions(request));
  openSession = { session, inputs: {}, outputs: [] };
  const signature = {
    inputs: session.inputMetadata.map(copyValueMetadata),
    outputs: session.outputMetadata.map(copyValueMetadata),
  };
  return { is: "open", signature };
}

function sessionOptions(request: OpenRequest): InferenceSession.SessionOptions {
  const { executionProvider, threads, optimize, profilePrefix } = request;
  const options: InferenceSession.SessionOptions = {
    executionProviders: executionProvider === "cpu" ? ["cpu"] : [executionProvider, "cpu"],
    intraOpNumThreads: threads,
    graphOptimizationLevel: optimize ? "all" : "disabled",
    logSeverityLevel: 3,
    // Threads that spin after a run would slow the other model down, which runs next.
    extra: { session: { force_spinning_stop: "1" } },
  };
  if (profilePrefix === undefined) return options;
  return { ...options, enableProfiling: true, profileFilePrefix: profilePrefix };
}

function copyValueMetadata(value: InferenceSession.ValueMetadata) {
  const { name } = value;
  return value.isTensor
    ? { name, isTensor: value.isTensor, type: value.type, shape: [...value.shape] }
    : { name, isTensor: value.isTensor };
}

/**
 * The runtime does not copy inputs, and some of its kernels round otherwise on memory that is less
 * aligned than its own. Resizable buffers start at a page.
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
      return { is: "memory", peakBytes: (await readPeakMemoryBytes()) - baselineBytes };
    case "end-profile":
      requireOpenSession().session.endProfiling();
      return { is: "profiled" };
  }
}

// ONNX Runtime's binding takes a Float16Array for empty; without the class, it takes the bits.
Reflect.deleteProperty(globalThis, "Float16Array");

// A run blocks this thread, so another one waits for the end of the parent.
new Worker(new URL("exit-with-parent.ts", import.meta.url)).unref();

process.on("message", (message) => {
  handleSessionRequest(sessionRequest.parse(message)).then(
    (reply) => process.send?.(reply),
    (error: unknown) => process.send?.({ is: "error", message: errorMessage(error) }),
  );
});

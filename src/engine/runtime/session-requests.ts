import { InferenceSession, Tensor } from "onnxruntime-node";
import { alignedBytes } from "./aligned-bytes.ts";
import { at } from "../onnx/at.ts";
import {
  compareRow,
  logitsName,
  prepareRow,
  type PreparedRow,
  readLogitRows,
} from "./logit-rows.ts";
import { type Matrix, RowProducts } from "./row-products.ts";
import { readPeakMemoryBytes, resetPeakMemory } from "./read-peak-memory-bytes.ts";
import type { SessionReply, SessionRequest } from "./session-protocol.ts";
import { isElementType, rawTensorElements, type TensorData } from "./tensor-data.ts";

interface OpenModel {
  readonly session: InferenceSession;
  readonly threads: number;
}

/** An ONNX file with one node, which gives back a number. */
const identityModel = Buffer.from(
  "CAg6NwoQCgF4EgF5IghJZGVudGl0eRIBZ1oPCgF4EgoKCAgBEgQKAggBYg8KAXkSCgoICAESBAoCCAFCBAoAEA0=",
  "base64",
);
const gpuOptions = { executionProviders: ["cuda", "cpu"], logSeverityLevel: 3 } as const;

const openModels = new Map<string, OpenModel>();
const feeds = new Map<string, Record<string, Tensor>>();
const references = new Map<string, PreparedRow[]>();
let sums: readonly RowProducts[] = [];
/** Resident memory before the first model; 0 as long as there was none. */
let baselineBytes = 0;

/** @throws what ONNX Runtime throws, and Error where no model is open by the request's key */
export async function handleSessionRequest(request: SessionRequest): Promise<SessionReply> {
  switch (request.do) {
    case "start-gpu":
      await (await InferenceSession.create(identityModel, gpuOptions)).release();
      return { is: "started" };
    case "open":
      return createInferenceSession(request);
    case "close":
      return closeSession(request.key);
    case "feed":
      freeArrays(Object.values(feeds.get(request.feed) ?? {}).map(({ data }) => data));
      feeds.set(
        request.feed,
        Object.fromEntries(request.inputs.map((input) => [input.name, createAlignedTensor(input)])),
      );
      return { is: "fed" };
    case "remember-logits":
      references.set(
        request.reference,
        readLogitRows(request.logits, request.positions).map((row) => prepareRow(row)),
      );
      return { is: "fed" };
    case "run":
      return { is: "outputs", tensors: await runAndSum(request) };
    case "begin-sums": {
      const { session } = requireOpenModel(request.key);
      sums = request.sums.map((each) => new RowProducts(each, addProductsBy(session)));
      return { is: "summing" };
    }
    case "write-sums": {
      const written = [];
      for (const each of sums) written.push(await each.write());
      return { is: "sums", written };
    }
    case "compare-tokens":
      return compareTokens(request);
    case "time":
      return { is: "times", milliseconds: await timeRuns(request, request.runs) };
    case "measure-memory":
      return { is: "memory", peakBytes: (await readPeakMemoryBytes()) - baselineBytes };
    case "end-profile":
      requireOpenModel(request.key).session.endProfiling();
      return { is: "profiled" };
  }
}

function requireOpenModel(key: string): OpenModel {
  const model = openModels.get(key);
  if (!model) throw new Error("No model is open");
  return model;
}

async function createInferenceSession(request: OpenRequest): Promise<SessionReply> {
  if (baselineBytes === 0) baselineBytes = resetPeakMemory();
  const session = await InferenceSession.create(request.modelPath, sessionOptions(request));
  openModels.set(request.key, { session, threads: request.threads });
  const signature = {
    inputs: session.inputMetadata.map(copyValueMetadata),
    outputs: session.outputMetadata.map(copyValueMetadata),
  };
  return { is: "open", signature };
}

async function closeSession(key: string): Promise<SessionReply> {
  await requireOpenModel(key).session.release();
  openModels.delete(key);
  return { is: "closed" };
}

function copyValueMetadata(value: InferenceSession.ValueMetadata) {
  const { name } = value;
  return value.isTensor
    ? { name, isTensor: value.isTensor, type: value.type, shape: [...value.shape] }
    : { name, isTensor: value.isTensor };
}

type RunRequest = Extract<SessionRequest, { do: "run" | "time" }>;

async function runSession({
  key,
  feed,
  outputs,
}: Pick<RunRequest, "key" | "feed" | "outputs">): Promise<TensorData[]> {
  const results = await requireOpenModel(key).session.run(feeds.get(feed) ?? {}, outputs);
  return Object.entries(results).map(([name, tensor]) => readTensor(name, tensor));
}

async function runAndSum({
  mask,
  summed = [],
  ...request
}: Extract<SessionRequest, { do: "run" }>): Promise<TensorData[]> {
  const outputs = [...new Set([...request.outputs, ...summed])];
  const tensors = await runSession({ ...request, outputs });
  for (const tensor of tensors.filter(({ name }) => summed.includes(name))) {
    for (const each of sums.filter((one) => one.takes(tensor.name))) await each.add(tensor, mask);
  }
  const isSent = ({ name }: TensorData) => request.outputs.includes(name);
  freeArrays(tensors.filter((tensor) => !isSent(tensor)).map(({ bytes }) => bytes));
  return tensors.filter(isSent);
}

/** By a model of one Gemm, which adds to the matrix that it is given. */
function addProductsBy(session: InferenceSession) {
  return async (left: Matrix, right: Matrix, sums: Matrix) => {
    const [a, b, c] = [left, right, sums].map(
      ({ values, rows, columns }) => new Tensor("float32", values, [rows, columns]),
    );
    if (a === undefined || b === undefined || c === undefined) throw new TypeError("No matrices");
    await session.run({ a, b, c }, { y: c });
  };
}

function readTensor(name: string, { type, dims, data }: Tensor): TensorData {
  if (!ArrayBuffer.isView(data) || !isElementType(type))
    throw new Error(`Output "${name}" has elements of type ${type}`);
  const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  return { name, type, shape: [...dims], bytes };
}

/** Logits are large: the process compares them itself, rather than send them. */
async function compareTokens({
  key,
  feed,
  reference,
}: Extract<SessionRequest, { do: "compare-tokens" }>): Promise<SessionReply> {
  const original = references.get(reference);
  const [result] = await runSession({ key, feed, outputs: [logitsName] });
  if (original === undefined || result === undefined) throw new Error("No logits are compared");
  const rows = readLogitRows(result, original.length);
  const nats = original.reduce((sum, row, i) => sum + compareRow(row, at(rows, i)).divergence, 0);
  freeArrays([result.bytes]);
  return { is: "divergence", nats: Number.isFinite(nats) ? nats : null };
}

async function timeRuns({ key, feed, outputs }: RunRequest, runs: number): Promise<number[]> {
  const { session, threads } = requireOpenModel(key);
  const inputs = feeds.get(feed) ?? {};
  const times: number[] = [];
  while (times.length < runs) {
    const before = process.resourceUsage();
    const start = performance.now();
    const results = await session.run(inputs, outputs);
    const milliseconds = performance.now() - start;
    times.push(threads === 1 ? leaveOutWaiting(milliseconds, before) : milliseconds);
    freeArrays(Object.values(results).map(({ data }) => data));
  }
  return times;
}

type OpenRequest = Extract<SessionRequest, { do: "open" }>;

/** Options of ONNX Runtime for a request to open a model. */
function sessionOptions(request: OpenRequest): InferenceSession.SessionOptions {
  const { executionProvider, threads, optimize, spinning = false, profilePrefix } = request;
  const options: InferenceSession.SessionOptions = {
    executionProviders: executionProvider === "cpu" ? ["cpu"] : [executionProvider, "cpu"],
    intraOpNumThreads: threads,
    graphOptimizationLevel: optimize ? "all" : "disabled",
    logSeverityLevel: 3,
    // Threads that spin after a run would slow the other model down, which runs next.
    extra: {
      session: { force_spinning_stop: "1", intra_op: { allow_spinning: spinning ? "1" : "0" } },
    },
  };
  if (profilePrefix === undefined) return options;
  return { ...options, enableProfiling: true, profileFilePrefix: profilePrefix };
}

/**
 * The milliseconds of a run of one thread, without those for which others had the processor.
 * @param before this process's resource usage at the run's beginning; the run has just ended
 */
function leaveOutWaiting(milliseconds: number, before: NodeJS.ResourceUsage): number {
  const after = process.resourceUsage();
  if (after.involuntaryContextSwitches === before.involuntaryContextSwitches) return milliseconds;
  const processorUs =
    after.userCPUTime - before.userCPUTime + after.systemCPUTime - before.systemCPUTime;
  return Math.min(milliseconds, processorUs / 1000);
}

/**
 * Frees the memory of arrays that nothing reads any more. Node itself would look for them once some
 * tens of megabytes have come together, which a model with large outputs has after a few runs.
 */
export function freeArrays(arrays: readonly Tensor["data"][]): void {
  for (const array of arrays) {
    if (ArrayBuffer.isView(array) && array.buffer instanceof ArrayBuffer) {
      array.buffer.transferToFixedLength(0);
    }
  }
}

function createAlignedTensor({ type, shape, bytes }: TensorData): Tensor {
  const aligned = alignedBytes(bytes.length);
  aligned.set(bytes);
  return new Tensor(type, rawTensorElements({ type, bytes: aligned }), shape);
}

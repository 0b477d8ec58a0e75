import { at } from "../onnx/at.ts";
import { ServiceError } from "../../contract/errors.ts";
import { formatBytes } from "../../contract/text/format-bytes.ts";
import { quoteName } from "../../contract/text/quote-name.ts";
import { errorMessage } from "../../log/error-message.ts";
import type { ModelPair } from "../runtime/model-session.ts";
import type { OnnxModel } from "../onnx/onnx-model.ts";
import { openModel } from "../onnx/open-model.ts";
import { pipelineGraph, type PipelineGraph } from "../pipeline/pipeline-graph.ts";

/** How a model is run: as a whole, or in stages that fit into memory one after the other. */
export interface ModelRun {
  readonly which: keyof ModelPair;
  readonly path: string;
  /** Bytes of weights in the form in which the runtime keeps them. */
  readonly weightBytes: number;
  /** Absent where the whole model fits. */
  readonly staging?: { readonly model: OnnxModel; readonly maxWeightBytes: number };
}

export interface ModelRuns extends Readonly<Record<keyof ModelPair, ModelRun>> {
  /** Why the models cannot be timed beside each other; undefined where they can. */
  readonly timingObstacle: string | undefined;
}

/**
 * Plans how original and result are run in the available memory.
 * @throws ServiceError evaluation_failed if a model cannot be read, or a single node does not fit
 */
export async function planModelRuns(
  originalPath: string,
  resultPath: string,
  availableBytes: number,
): Promise<ModelRuns> {
  const original = await planModelRun("original", originalPath, availableBytes);
  const result = await planModelRun("result", resultPath, availableBytes);
  const needs = [original, result].map((run) => estimateSessionBytes(run.weightBytes));
  const neededBytes = needs.reduce((sum, bytes) => sum + bytes, 0);
  const shortage = describeShortage(neededBytes, availableBytes);
  return { original, result, timingObstacle: shortage && `both models together ${shortage}` };
}

/**
 * Plans how a model is run in the available memory.
 * @throws ServiceError evaluation_failed if it cannot be read, or a single node does not fit
 */
export async function planModelRun(
  which: keyof ModelPair,
  path: string,
  availableBytes: number,
): Promise<ModelRun> {
  const model = await readGraph(which, path);
  const graph = pipelineGraph(model.proto);
  const weightBytes = sumRuntimeBytes(graph, graph.parameters.keys());
  const maxWeightBytes = limitWeightBytes(limitSessionBytes(availableBytes));
  if (weightBytes <= maxWeightBytes) return { which, path, weightBytes };
  checkLargestStep(which, graph, availableBytes);
  return { which, path, weightBytes, staging: { model, maxWeightBytes } };
}

/** How many sessions of a model fit into memory beside each other; 0 for one that needs stages. */
export async function countSessions(path: string, availableBytes: number): Promise<number> {
  const run = await planModelRun("original", path, availableBytes);
  if (run.staging !== undefined) return 0;
  return Math.floor(limitSessionBytes(availableBytes) / estimateSessionBytes(run.weightBytes));
}

/** Why sessions that need so much cannot be open at once; undefined where they can. */
function describeShortage(neededBytes: number, availableBytes: number): string | undefined {
  const limitBytes = limitSessionBytes(availableBytes);
  if (neededBytes <= limitBytes) return undefined;
  const [needed, limit, available] = [neededBytes, limitBytes, availableBytes].map(formatBytes);
  return `need about ${needed} of memory, and may take ${limit} of the ${available} available`;
}

async function readGraph(which: keyof ModelPair, path: string): Promise<OnnxModel> {
  try {
    return await openModel(path, Number.MAX_SAFE_INTEGER);
  } catch (error) {
    const message = `The ${which} could not be run: ${errorMessage(error)}`;
    throw new ServiceError("evaluation_failed", message, { cause: error });
  }
}

function sumRuntimeBytes({ parameters }: PipelineGraph, indices: Iterable<number>): number {
  let bytes = 0;
  for (const index of indices) bytes += at(parameters, index).runtimeBytes;
  return bytes;
}

function checkLargestStep(
  which: keyof ModelPair,
  graph: PipelineGraph,
  availableBytes: number,
): void {
  for (const { node, parameters } of graph.steps) {
    const neededBytes = estimateSessionBytes(sumRuntimeBytes(graph, parameters));
    const shortage = describeShortage(neededBytes, availableBytes);
    if (shortage === undefined) continue;
    const weights = `The weights of node ${quoteName(node.name)} (${node.opType})`;
    throw new ServiceError("evaluation_failed", `${weights} of the ${which} alone ${shortage}`);
  }
}

/** Resident memory of a process with the runtime and without a model, bytes, generously. */
const sessionBaseBytes = 128 * 1024 ** 2;

/**
 * Peak memory of a session for each byte of weights in float32: most kernels keep a copy in a
 * layout of their own, and while the model loads, a weight can be there in three forms. Measured on
 * 320 MiB of MatMul weights: float32 1.4, with external data 1.3, int8 1.3, int4 1.2, float16 1.8.
 */
const bytesPerWeightByte = 2;

/** Share of the memory at hand that sessions are planned to take; the rest is for activations. */
const plannedShare = 0.75;

/** Bytes of memory that a session with so many bytes of weights in float32 needs. */
function estimateSessionBytes(weightBytes: number): number {
  return sessionBaseBytes + weightBytes * bytesPerWeightByte;
}

/** Bytes that all sessions together may be planned to take. */
export function limitSessionBytes(availableBytes: number): number {
  return Math.floor(availableBytes * plannedShare);
}

/** Most bytes of weights in float32 that a session of so many bytes can have. */
function limitWeightBytes(sessionBytes: number): number {
  return Math.floor((sessionBytes - sessionBaseBytes) / bytesPerWeightByte);
}

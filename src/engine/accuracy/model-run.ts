import { ServiceError } from "../../contract/errors.ts";
import { formatBytes } from "../../contract/format-bytes.ts";
import { errorMessage } from "../../log/error-message.ts";
import type { ModelPair } from "../evaluate/model-pair.ts";
import type { OnnxModel } from "../onnx/onnx-model.ts";
import { openModel } from "../onnx/open-model.ts";
import { quoteName } from "../onnx/quote-name.ts";
import { pipelineGraph, type PipelineGraph } from "../pipeline/pipeline-graph.ts";
import { estimateSessionBytes, fitsIntoMemory, limitWeightBytes } from "./session-memory.ts";

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

interface ModelPaths {
  readonly originalPath: string;
  readonly resultPath: string;
}

/**
 * Plans how original and result are run in the available memory.
 * @throws ServiceError evaluation_failed if a model cannot be read, or a single node does not fit
 */
export async function planModelRuns(
  { originalPath, resultPath }: ModelPaths,
  availableBytes: number,
): Promise<ModelRuns> {
  const original = await planModelRun("original", originalPath, availableBytes);
  const result = await planModelRun("result", resultPath, availableBytes);
  const models = [original, result];
  const needed = models.reduce((sum, run) => sum + estimateSessionBytes(run.weightBytes), 0);
  const canTime = fitsIntoMemory(needed, availableBytes);
  const sizes = `about ${formatBytes(needed)} of memory, and ${formatBytes(availableBytes)}`;
  const timingObstacle = canTime ? undefined : `both models need ${sizes} are available`;
  return { original, result, timingObstacle };
}

async function planModelRun(
  which: keyof ModelPair,
  path: string,
  availableBytes: number,
): Promise<ModelRun> {
  const model = await readGraph(which, path);
  const graph = pipelineGraph(model.proto);
  const weightBytes = sumRuntimeBytes(graph, graph.parameters.keys());
  const maxWeightBytes = Math.floor(limitWeightBytes(availableBytes));
  if (weightBytes <= maxWeightBytes) return { which, path, weightBytes };
  checkLargestStep(which, graph, { maxWeightBytes, availableBytes });
  return { which, path, weightBytes, staging: { model, maxWeightBytes } };
}

async function readGraph(which: keyof ModelPair, path: string): Promise<OnnxModel> {
  try {
    return await openModel(path, { maxBytes: Number.MAX_SAFE_INTEGER });
  } catch (error) {
    const message = `The ${which} could not be run: ${errorMessage(error)}`;
    throw new ServiceError("evaluation_failed", message, { cause: error });
  }
}

function sumRuntimeBytes({ parameters }: PipelineGraph, indices: Iterable<number>): number {
  let bytes = 0;
  for (const index of indices) bytes += parameters[index]?.runtimeBytes ?? 0;
  return bytes;
}

interface Limits {
  readonly maxWeightBytes: number;
  readonly availableBytes: number;
}

function checkLargestStep(
  which: keyof ModelPair,
  graph: PipelineGraph,
  { maxWeightBytes, availableBytes }: Limits,
): void {
  for (const { node, parameters } of graph.steps) {
    const bytes = sumRuntimeBytes(graph, parameters);
    if (bytes <= maxWeightBytes) continue;
    const needed = formatBytes(estimateSessionBytes(bytes));
    const message =
      `Node ${quoteName(node.name)} (${node.opType}) of the ${which} alone needs about ${needed} ` +
      `of memory, and ${formatBytes(availableBytes)} are available`;
    throw new ServiceError("evaluation_failed", message);
  }
}

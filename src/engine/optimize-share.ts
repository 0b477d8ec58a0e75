import { createByteProgress } from "./byte-progress.ts";
import { type FetchRanges, rangesInModel } from "./onnx/file-range.ts";
import { planCompression } from "./plan-compression.ts";
import type { PlanOptions } from "./plan-compression.ts";
import { partitionTasks } from "./quantize/tasks/partition-tasks.ts";
import { writePartition } from "./quantize/tasks/write-partition.ts";

interface ShareOptions extends PlanOptions {
  /** Which of how many shares, from 0. */
  readonly share: { readonly index: number; readonly count: number };
  /** The file to write; must not exist. */
  readonly outputPath: string;
  /** SHA-256 of the ONNX file, where it is known; saves to hash its weights. */
  readonly modelSha256?: string | undefined;
  /** Called before parts of the ONNX file are read that need not be on this machine yet. */
  readonly fetchRanges?: FetchRanges | undefined;
  readonly signal: AbortSignal;
  /** Called with the fraction of the work that is done, from 0 to 1. */
  readonly onProgress: (fraction: number, message: string) => void;
}

interface ShareReport {
  readonly weights: number;
  /** Bytes of those weights in the original. */
  readonly sourceBytes: number;
  /** Size of the file. */
  readonly bytes: number;
}

/**
 * Compresses a share of a model's weights for assembleShares. Shares are of about the same size,
 * and the same on every machine.
 * @throws ServiceError those of planCompression
 */
export async function optimizeShare(
  modelPath: string,
  { share, outputPath, modelSha256, fetchRanges, signal, onProgress, ...options }: ShareOptions,
): Promise<ShareReport> {
  const { model, tasks } = await planCompression(modelPath, options);
  signal.throwIfAborted();
  const shareTasks = partitionTasks(tasks, share.count)[share.index] ?? [];
  const sources = shareTasks.map(({ source }) => source);
  await fetchRanges?.(rangesInModel(model, sources));
  const sourceBytes = shareTasks.reduce((sum, task) => sum + task.sourceBytes, 0);
  const message = `Compressing share ${share.index + 1} of ${share.count}`;
  const onBytes = createByteProgress({ total: sourceBytes, message, onProgress });
  const partition = { model, tasks: shareTasks };
  const bytes = await writePartition(outputPath, partition, { modelSha256, signal, onBytes });
  return { weights: shareTasks.length, sourceBytes, bytes };
}

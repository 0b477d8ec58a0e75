import path from "node:path";
import { ServiceError } from "../../contract/errors.ts";
import { quoteName } from "../../contract/text/quote-name.ts";
import type { Encoding } from "./encodings.ts";

/** A tensor of a checkpoint, whose bytes stay in their file. */
export interface CheckpointTensor {
  readonly name: string;
  readonly path: string;
  /** Of its first byte in the file. */
  readonly offset: number;
  readonly encoding: Encoding;
  /** Rows of a group whose halves are interleaved, as `StoredRows` says. */
  readonly interleavedRows?: number | undefined;
  /** Sizes of the axes, the slowest first. */
  readonly dims: readonly number[];
}

export function invalidFileError(
  file: string,
  tensor: string | undefined,
  problem: string,
  cause?: unknown,
): ServiceError {
  const where = tensor === undefined ? "" : `tensor ${quoteName(tensor)}: `;
  const message = `${path.basename(file)}: ${where}${problem}`;
  return new ServiceError("model_invalid", message, { cause });
}

export function truncatedFileError(file: string, problem: string): ServiceError {
  return new ServiceError("model_truncated", `${path.basename(file)} ends early: ${problem}`);
}

import type { ErrorSums } from "../../evaluate/error-sums.ts";
import type { OutputWriter } from "./output-writer.ts";
import type { SourceReader } from "./source-reader.ts";
import type { TileLimits } from "./tile-limits.ts";
import type { AffineTask } from "./weight-task.ts";

/** What the quantization of a slice reads and writes. */
export interface SliceContext {
  readonly task: AffineTask;
  readonly reader: SourceReader;
  readonly output: OutputWriter;
  readonly limits: TileLimits;
  readonly sums: ErrorSums;
}

import type { ElementType } from "./tensor-data.ts";
import type { ZipEntry } from "./zip-directory.ts";

/** An array of the archive that fits the input of its name. */
export interface SampleArray {
  readonly entry: ZipEntry;
  readonly name: string;
  readonly type: ElementType;
  /** Shape of one sample. */
  readonly shape: readonly number[];
  readonly samples: number;
  readonly dataOffset: number;
}

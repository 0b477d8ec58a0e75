import type { OnnxModel } from "./onnx-model.ts";

/** A part of a model's ONNX file, bytes. */
export interface FileRange {
  readonly offset: number;
  readonly length: number;
}

/** Brings parts of the ONNX file to this machine, where not all of it is there. */
export type FetchRanges = (ranges: readonly FileRange[]) => Promise<void>;

type Source = ({ readonly kind: "file"; readonly path: string } & FileRange) | { kind: string };

/** Those of the sources that lie in the ONNX file. */
export function rangesInModel({ path }: OnnxModel, sources: readonly Source[]): FileRange[] {
  return sources.flatMap((source) =>
    "path" in source && source.path === path
      ? [{ offset: source.offset, length: source.length }]
      : [],
  );
}

import type { Weight } from "./find-weights.ts";
import { tensorDims } from "./tensor-dims.ts";

export function weightDims({ tensor }: Weight): number[] {
  return tensorDims(tensor);
}

import type { Stored } from "../../../src/kubernetes/resources.ts";
import type { CompressionJobObject } from "../../../src/resources/custom-resources.ts";

/** A change of a CompressionJob of the batch. */
export interface ChildPatch {
  readonly child: Stored<CompressionJobObject>;
  readonly spec: { readonly cancel: true } | { readonly suspend: boolean };
}

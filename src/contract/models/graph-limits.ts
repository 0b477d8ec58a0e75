import { ServiceError } from "../errors.ts";

/** What a graph without its weights may have at most. */
export interface GraphLimits {
  /** Names, attributes, numbers of lists and all else that is decoded one by one. */
  readonly fields: number;
  /** Nodes and tensors together. */
  readonly parts: number;
}

/**
 * A graph of 50,000 nodes, the largest that is known, has about 2 million fields and, where its
 * constants are nodes, 75,000 nodes and tensors. A decoded field takes about 100 bytes.
 */
export const graphLimits = { fields: 3_000_000, parts: 100_000 } as const satisfies GraphLimits;

export function graphLimitError(limit: string): ServiceError {
  const message = `The graph without its weights has more than ${limit}`;
  return new ServiceError("model_unsupported", message);
}

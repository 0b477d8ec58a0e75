/** Bytes of a file that are known before any weight is. */
export interface Literal {
  readonly offset: number;
  readonly bytes: Uint8Array;
}

export interface FileLayout {
  readonly name: string;
  readonly kind: "model" | "weights" | "manifest";
  readonly bytes: number;
  readonly literals: readonly Literal[];
}

/** Where a payload goes. */
export interface Placement {
  readonly file: string;
  readonly offset: number;
}

/** A model's files to the byte, without the content of its weights. */
export interface ModelLayout {
  readonly files: readonly FileLayout[];
  /** Places of each payload by its index; a payload that two tensors refer to has two. */
  readonly placements: ReadonlyMap<number, readonly Placement[]>;
}

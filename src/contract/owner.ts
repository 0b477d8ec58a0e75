/** The workflow that something comes from. */
export interface Origin {
  /** The repository's number, since names can change hands. */
  readonly repository: string;
  readonly commit: string;
}

/** Whose a thing is. */
export interface Ownership {
  readonly project: string;
  /** Whose it is within the project, where it is somebody's. */
  readonly personId?: string | null;
  /** Null where it comes from no workflow. */
  readonly origin: Partial<Origin> | null;
}

/** Whose a job or a batch is. */
export interface Owner extends Ownership {
  readonly origin: Origin | null;
}

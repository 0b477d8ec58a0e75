export interface RunTasksOptions {
  readonly signal: AbortSignal;
  /** Called with the source bytes done since the last call. */
  readonly onBytes: (bytes: number) => void;
}

/** A process, distinct from later ones with the same pid. */
export interface ProcessIdentity {
  readonly pid: number;
  readonly startMark: string;
}

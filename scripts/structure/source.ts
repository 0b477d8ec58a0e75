export interface Place {
  readonly file: string;
  readonly line: number;
  readonly name: string;
}

/** Says in which line an offset lies. */
export type FindPlace = (offset: number, name: string) => Place;

export interface Import extends Place {
  readonly target: string;
  /** What is taken from the target; `*` is everything, none of a file that is only started. */
  readonly names: readonly string[];
}

export interface FunctionPlace extends Place {
  readonly lines: number;
  readonly isDeclaration: boolean;
}

/** What the figures need to know of one file. Paths start at the repository's root. */
export interface Source {
  readonly file: string;
  readonly lines: readonly string[];
  readonly imports: readonly Import[];
  readonly exports: readonly Place[];
  readonly functions: readonly FunctionPlace[];
  readonly conditionalSpreads: readonly Place[];
  readonly anyTypes: readonly Place[];
}

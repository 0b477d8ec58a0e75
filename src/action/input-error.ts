/** Something that the caller of the action has to mend. Each problem says what was found, and what is allowed. */
export class InputError extends Error {
  override readonly name = "InputError";
  readonly problems: readonly Problem[];

  constructor(problems: readonly Problem[], options?: ErrorOptions) {
    super(problems.map(({ message }) => message).join("\n"), options);
    this.problems = problems;
  }
}

export interface Problem {
  readonly message: string;
  /** Where in the workspace it is, to be shown beside the line. */
  readonly place?: { readonly file: string; readonly line: number };
}

import type { Place } from "../contract/jobs/github-report.ts";

/** What the workflow's author has to correct. */
export class InputError extends Error {
  override readonly name = "InputError";
  readonly problems: readonly InputProblem[];

  constructor(problems: readonly InputProblem[], options?: ErrorOptions) {
    super(problems.map(({ message }) => message).join("\n"), options);
    this.problems = problems;
  }
}

export interface InputProblem {
  /** States what was found and what is allowed. */
  readonly message: string;
  /** The line of the workspace to annotate. */
  readonly place?: Place | undefined;
}

/** Answers a question about the input, or leaves it to the next check. */
type Check<Input, Answer> = (input: Input) => Answer | undefined;

/** The answer of the first check that has one. */
export function firstAnswer<Input, Answer>(
  checks: readonly Check<Input, Answer>[],
  input: Input,
): Answer | undefined {
  for (const check of checks) {
    const answer = check(input);
    if (answer !== undefined) return answer;
  }
  return undefined;
}

/** Whether a key was pressed where texts are typed, so that it means itself there. */
export function isTyping({ target }: KeyboardEvent): boolean {
  return target instanceof Element && target.matches("input, textarea, select");
}

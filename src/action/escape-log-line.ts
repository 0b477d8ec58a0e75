/** Text that is not ours, for a line of the step's log: the runner obeys marks in it wherever they stand. */
export function escapeLogLine(text: string): string {
  return text.replaceAll("##[", "##\u200b[").replaceAll(/[\r\n]+/g, " ");
}

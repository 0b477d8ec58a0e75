/** Foreign text on one line of the step's log, without commands of the form `##[` to the runner. */
export function escapeLogLine(text: string): string {
  return text.replaceAll("##[", "##\u200b[").replaceAll(/[\r\n]+/g, " ");
}

/** Text of others on one line of the step's log, without the runner's commands of the form `##[`. */
export function escapeLogLine(text: string): string {
  return text.replaceAll("##[", "##\u200b[").replaceAll(/[\r\n]+/g, " ");
}

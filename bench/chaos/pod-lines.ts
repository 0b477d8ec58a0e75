const lineCount = 40;

/** What the worker of a pod prints. */
export function podLines(pod: string): string[] {
  return Array.from({ length: lineCount }, (_, index) => `Line ${index + 1} of ${pod}`);
}

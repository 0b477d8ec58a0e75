/** Sum of a metric's samples whose labels match, of a text in Prometheus' format. */
export function sumMetric(
  text: string,
  metric: string,
  labels: Readonly<Record<string, RegExp>>,
): number {
  return text
    .split("\n")
    .filter((line) => line.startsWith(`${metric}{`))
    .filter((line) =>
      Object.entries(labels).every(([label, pattern]) => pattern.test(readLabel(line, label))),
    )
    .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(" "))), 0);
}

function readLabel(line: string, label: string): string {
  return new RegExp(`[{,]${label}="([^"]*)"`).exec(line)?.[1] ?? "";
}

/** A latency for people, with three significant digits: `4.75 ms`. */
export function formatMs(ms: number): string {
  return `${Number(ms.toPrecision(3))} ms`;
}

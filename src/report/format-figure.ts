/** A change with its direction; `=` where it rounds to zero. */
export function formatChange(
  change: number,
  format: (value: number) => string,
): string | undefined {
  if (!Number.isFinite(change)) return undefined;
  const text = format(Math.abs(change));
  return text === format(0) ? "=" : `${change > 0 ? "▲" : "▼"} ${text}`;
}

export function formatPercent(share: number): string {
  return `${(100 * share).toFixed(1)} %`;
}

export function formatDecibels(value: number): string {
  return `${value.toFixed(1)} dB`;
}

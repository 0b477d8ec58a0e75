/** A change with its direction; `=` where it rounds to zero. */
export function formatChange(
  change: number,
  format: (value: number) => string,
): string | undefined {
  if (!Number.isFinite(change)) return undefined;
  const text = format(Math.abs(change));
  return text === format(0) ? "=" : `${change > 0 ? "▲" : "▼"} ${text}`;
}

export function formatPercent(share: number, digits?: number): string {
  const percent = 100 * share;
  return `${digits === undefined ? percent.toFixed(1) : formatQuantity(percent, digits)} %`;
}

/** A ratio to the original's or the baseline's figure, such as `×0.98`, with two decimals at least. */
export function formatTimes(ratio: number, digits = 2): string {
  const decimals = formatQuantity(ratio, digits).split(".")[1]?.length ?? 0;
  return `×${ratio.toFixed(Math.max(2, decimals))}`;
}

export function formatDecibels(value: number): string {
  return `${value.toFixed(1)} dB`;
}

/** A number with at most so many decimals. */
export function formatQuantity(value: number, digits: number): string {
  return String(Number(value.toFixed(digits)));
}

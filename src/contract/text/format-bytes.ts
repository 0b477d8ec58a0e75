const units = ["bytes", "kB", "MB", "GB", "TB"] as const;

/** A size for people, in decimal units with three significant digits: `4.75 MB`. */
export function formatBytes(bytes: number): string {
  let scaled = bytes;
  let unit = 0;
  // 999.5 would round to "1000".
  for (; scaled >= 999.5 && unit < units.length - 1; unit++) scaled /= 1000;
  const digits = unit === 0 ? 0 : scaled >= 99.95 ? 0 : scaled >= 9.995 ? 1 : 2;
  return `${scaled.toFixed(digits)} ${units[unit]}`;
}

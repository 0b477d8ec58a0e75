export function roundUpToFour(count: number): number {
  return Math.ceil(count / 4) * 4;
}

/** Half bytes, counted from the low bits of the first byte on. */
export interface HalfByteRun {
  readonly from: number;
  readonly to: number;
  readonly count: number;
}

/** Copies half bytes; those of `target` beside them stay as they are. */
export function copyHalfBytes(
  source: Uint8Array,
  target: Uint8Array,
  { from, to, count }: HalfByteRun,
): void {
  for (let index = 0; index < count; index++) {
    const [read, written] = [from + index, to + index];
    const value = (Number(source[Math.floor(read / 2)]) >> ((read % 2) * 4)) & 15;
    const at = Math.floor(written / 2);
    const shift = (written % 2) * 4;
    target[at] = (Number(target[at]) & (0xf0 >> shift)) | (value << shift);
  }
}

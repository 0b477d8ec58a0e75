import type { ErrorSums } from "../../evaluate/error-sums.ts";
import type { ChannelLayout, ValueTile } from "./channel-ranges.ts";
import type { LinearCodes } from "./linear-codes.ts";

/** Rounds the tile's values (half to even) to codes of their channel, written to `into` from its beginning, and adds the error to `sums`. */
export function quantizeLinear(
  { values, start }: ValueTile,
  { layout, codes }: { layout: ChannelLayout; codes: LinearCodes },
  into: Int8Array | Uint8Array,
  sums: ErrorSums,
): void {
  const { lowest, highest, scales, zeroPoints } = codes;
  const magic = 1.5 * 2 ** 52;
  let { signal, noise, product, changed, maxAbsoluteError } = sums;
  let index = 0;
  while (index < values.length) {
    const channel = Math.floor((start + index) / layout.inner) % layout.channels;
    const end = Math.min(values.length, index + layout.inner - ((start + index) % layout.inner));
    const scale = Number(scales[channel]);
    const zeroPoint = Number(zeroPoints[channel]);
    for (; index < end; index++) {
      const value = Number(values[index]);
      const code = Math.min(highest, Math.max(lowest, Math.fround(value / scale) + magic - magic + zeroPoint));
      into[index] = code;
      const restored = (code - zeroPoint) * scale;
      const error = restored - value;
      signal += value * value;
      noise += error * error;
      changed += restored * restored;
      product += value * restored;
      if (error > maxAbsoluteError) maxAbsoluteError = error;
      if (-error > maxAbsoluteError) maxAbsoluteError = -error;
    }
  }
  if (!Number.isFinite(noise)) sums.notFinite = true;
  Object.assign(sums, { signal, noise, product, changed, maxAbsoluteError });
}

/** Repeatable pseudo-random numbers in [0, 1). */
export function randomNumbers(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Values like a trained weight's: a bell curve with a few outliers, and some exact zeros. */
export function weightValues(count: number, seed = 1): Float32Array {
  const next = randomNumbers(seed);
  return Float32Array.from({ length: count }, () => {
    const bell = (next() + next() + next() - 1.5) * 0.05;
    const pick = next();
    if (pick < 0.01) return 0;
    return pick > 0.99 ? bell * 20 : bell;
  });
}

/** Scales of a product's inputs, which one axis of a weight lies along. */
export interface InputScales {
  readonly scales: readonly number[];
  /** Values of the weight for each step along the axis. */
  readonly inner: number;
}

/** Multiplies values of a weight, the first of which has the given index, by their inputs' scales. */
export function multiplyInputs(
  values: Float32Array,
  start: number,
  { scales, inner }: InputScales,
): void {
  let input = Math.floor(start / inner) % scales.length;
  let rest = inner - (start % inner);
  for (let index = 0; index < values.length; index++) {
    values[index] = Number(values[index]) * Number(scales[input]);
    rest -= 1;
    if (rest > 0) continue;
    rest = inner;
    input = (input + 1) % scales.length;
  }
}

/** Widens the largest magnitude that a weight has for each input by some of its values. */
export function widenInputMagnitudes(
  values: Float32Array,
  start: number,
  { largest, inner }: { readonly largest: Float64Array; readonly inner: number },
): void {
  let input = Math.floor(start / inner) % largest.length;
  let rest = inner - (start % inner);
  for (let index = 0; index < values.length; index++) {
    // A value that is not a number leaves none.
    largest[input] = Math.max(Number(largest[input]), Math.abs(Number(values[index])));
    rest -= 1;
    if (rest > 0) continue;
    rest = inner;
    input = (input + 1) % largest.length;
  }
}

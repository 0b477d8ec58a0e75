/** How the frequencies of rotary embeddings are changed for long contexts. */
export type RotaryScaling =
  | { readonly kind: "none" }
  | { readonly kind: "linear"; readonly factor: number }
  | { readonly kind: "divided"; readonly divisors: readonly number[] }
  | {
      readonly kind: "llama3";
      readonly factor: number;
      readonly lowFrequencyFactor: number;
      readonly highFrequencyFactor: number;
      readonly originalContext: number;
    };

export interface RotaryFacts {
  /** Base of the frequencies, `rope_theta`. */
  readonly theta: number;
  /** Dimensions of a head that are rotated, an even number. */
  readonly dimensions: number;
  readonly scaling: RotaryScaling;
}

/** Cosines or sines of each position's angles: rows are positions, columns pairs of dimensions. */
export interface RotaryCache {
  readonly kind: "rotary";
  readonly what: "cos" | "sin";
  readonly facts: RotaryFacts;
  readonly rows: number;
  readonly columns: number;
}

/** Fills `into` with the values of a cache from the one with index `start` on, row by row. */
export function fillRotaryCache(
  { what, facts, columns }: RotaryCache,
  start: number,
  into: Float32Array,
): void {
  const frequencies = rotaryFrequencies(facts);
  const compute = what === "cos" ? Math.cos : Math.sin;
  for (let index = 0; index < into.length; index++) {
    const [position, column] = [Math.floor((start + index) / columns), (start + index) % columns];
    into[index] = compute(Math.fround(position * Number(frequencies[column])));
  }
}

/**
 * Angles that a position adds, one for each pair of dimensions, in radians (Su et al., RoFormer,
 * arXiv 2104.09864, section 3.2), in the float32 arithmetic of transformers, whose float32 angles
 * the model was trained and is run with.
 */
function rotaryFrequencies({ theta, dimensions, scaling }: RotaryFacts): Float32Array {
  const frequencies = Float32Array.from({ length: dimensions / 2 }, (_, pair) => {
    const power = Math.fround(theta ** Math.fround((2 * pair) / dimensions));
    return 1 / power;
  });
  switch (scaling.kind) {
    case "none":
      return frequencies;
    case "linear":
      return frequencies.map((frequency) => frequency / scaling.factor);
    case "divided":
      return frequencies.map((frequency, pair) => frequency / Number(scaling.divisors[pair]));
    case "llama3":
      return frequencies.map((frequency) => scaleAsLlama3(frequency, scaling));
  }
}

/** Llama 3.1: low frequencies are divided, high ones kept, those between interpolated. */
function scaleAsLlama3(
  frequency: number,
  scaling: Extract<RotaryScaling, { kind: "llama3" }>,
): number {
  const { factor, lowFrequencyFactor, highFrequencyFactor, originalContext } = scaling;
  const wavelength = Math.fround((2 * Math.PI) / frequency);
  if (wavelength > originalContext / lowFrequencyFactor) return frequency / factor;
  if (wavelength < originalContext / highFrequencyFactor) return frequency;
  const range = highFrequencyFactor - lowFrequencyFactor;
  const share = (originalContext / wavelength - lowFrequencyFactor) / range;
  return ((1 - share) * frequency) / factor + share * frequency;
}

import type { TensorSignature } from "../runtime/session-protocol.ts";

/** One choice of sizes for dimensions that a model leaves open. */
export interface SizeChoice {
  /** Tokens before the sequence whose keys and values are given. */
  past: number;
  sequence: number;
  height: number;
  width: number;
  /** Generated token ids stay below it. */
  idLimit: number;
}

/**
 * Sizes in the order in which they are tried, first without past tokens: what a model makes of
 * random keys and values says little. Vision backbones want multiples of 32 and more,
 * text recognizers heights of 48 or 32, voice detectors windows of 576 or 512, small vocabularies
 * small ids, and some graphs work on one element only.
 */
const sizes: readonly Omit<SizeChoice, "past">[] = [
  { sequence: 32, height: 256, width: 256, idLimit: 100 },
  { sequence: 576, height: 48, width: 320, idLimit: 100 },
  { sequence: 512, height: 224, width: 224, idLimit: 100 },
  { sequence: 1536, height: 320, width: 320, idLimit: 10 },
  { sequence: 8, height: 32, width: 32, idLimit: 2 },
  { sequence: 16_000, height: 640, width: 640, idLimit: 2 },
  { sequence: 1, height: 16, width: 16, idLimit: 2 },
];

export const sizeChoices: readonly SizeChoice[] = [0, 8].flatMap((past) =>
  sizes.map((size) => ({ ...size, past })),
);

const channels = 3;
const frames = 4;

interface NamedSize {
  pattern: RegExp;
  size: (choice: SizeChoice) => number;
}

const namedSizes: readonly NamedSize[] = [
  { pattern: /batch|^n$|^b$|^bs$/i, size: () => 1 },
  { pattern: /total.*seq|total.*len/i, size: ({ sequence, past }) => sequence + past },
  { pattern: /(past|cache)(?!.*dim)/i, size: ({ past }) => past },
  { pattern: /height|^h$/i, size: ({ height }) => height },
  { pattern: /width|^w$/i, size: ({ width }) => width },
  { pattern: /chan|^c$/i, size: () => channels },
  { pattern: /seq|len|time|frame|token|sample|^t$|^s$|^l$/i, size: ({ sequence }) => sequence },
];

/** Shape to feed an input with: fixed sizes stay, open ones follow their name, else their place. */
export function inputShape(
  { shape }: Pick<TensorSignature, "shape">,
  choice: SizeChoice,
): number[] {
  return shape.map((size, axis) =>
    typeof size === "number"
      ? size
      : (sizeByName(size, choice) ?? sizeByPlace(shape, axis, choice)),
  );
}

/** A name such as `past_sequence_length + 1` is the sum of what it names. */
function sizeByName(name: string, choice: SizeChoice): number | undefined {
  const sizes = name
    .split("+")
    .map((term) => (/^\s*\d+\s*$/.test(term) ? Number(term) : sizeByWord(term.trim(), choice)));
  return sizes.reduce(
    (sum, size) => (sum === undefined || size === undefined ? undefined : sum + size),
    0,
  );
}

function sizeByWord(word: string, choice: SizeChoice): number | undefined {
  return namedSizes.find(({ pattern }) => pattern.test(word))?.size(choice);
}

/**
 * Layouts assumed: `[batch, sequence, ...]`, `[layers, batch, features]` of recurrent states, NCHW
 * or NHWC images, NCDHW volumes.
 */
function sizeByPlace(shape: TensorSignature["shape"], axis: number, choice: SizeChoice): number {
  const { sequence, height, width } = choice;
  if (axis === batchAxis(shape)) return 1;
  const channelsLast = typeof shape.at(-1) === "number" && Number(shape.at(-1)) <= 4;
  const images = channelsLast ? [1, height, width, channels] : [1, channels, height, width];
  const layouts: Record<number, number[]> = { 4: images, 5: [1, channels, frames, height, width] };
  return layouts[shape.length]?.[axis] ?? sequence;
}

function batchAxis(shape: TensorSignature["shape"]): number {
  return typeof shape[0] === "number" && shape[0] !== 1 && shape.length === 3 ? 1 : 0;
}

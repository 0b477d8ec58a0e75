/** Frequencies of a vowel's first three formants, Hz (Peterson and Barney, 1952). */
const vowels: readonly (readonly [number, number, number])[] = [
  [730, 1090, 2440],
  [270, 2290, 3010],
  [300, 870, 2240],
  [530, 1840, 2480],
  [570, 840, 2410],
  [660, 1720, 2410],
];

const syllableSeconds = 0.21;
/** Of words, whose loudness differs by 20 dB. */
const loudest = 0.25;
/** Of the room. */
const background = 0.003;

interface Stretch {
  /** Position of the first value in the utterance. */
  readonly start: number;
  readonly length: number;
  /** Values a second. */
  readonly rate: number;
}

/**
 * A stretch of an utterance: syllables of a vowel, as the harmonics of a gliding voice under three
 * formants, each after a hiss, with pauses between words. It depends on the position only, so that
 * stretches join.
 */
export function speak({ start, length, rate }: Stretch): Float32Array {
  return Float32Array.from({ length }, (_, index) => speechAt((start + index) / rate, rate));
}

function speechAt(seconds: number, rate: number): number {
  const syllable = Math.floor(seconds / syllableSeconds);
  const within = seconds / syllableSeconds - syllable;
  const word = Math.floor(syllable / 4);
  const noise = hash(seconds * rate) - hash(seconds * rate - 1);
  // Every fourth syllable is a pause.
  if (syllable % 4 === 3) return background * noise;
  const amplitude = loudest * 10 ** (-0.5 - 0.5 * hash(word + 1));
  const hiss = within < 0.25 ? Math.sin((within / 0.25) * Math.PI) * 0.12 : 0;
  const envelope = within < 0.2 ? 0 : Math.sin(((within - 0.2) / 0.8) * Math.PI);
  const voice = envelope * voiceAt(seconds, syllable, rate);
  return amplitude * (voice + hiss * noise) + background * noise;
}

function voiceAt(seconds: number, syllable: number, rate: number): number {
  const formants = vowels[(syllable * 7 + 3) % vowels.length] ?? [500, 1500, 2500];
  // The integral of 125 + 25 cos(3 t) Hz.
  const cycles = 125 * seconds + (25 / 3) * Math.sin(3 * seconds);
  const pitch = 125 + 25 * Math.cos(3 * seconds);
  const highest = Math.min(4000, rate / 2);
  let sum = 0;
  for (let harmonic = 1; harmonic * pitch < highest; harmonic++) {
    const frequency = harmonic * pitch;
    const level = formants.reduce((total, formant, index) => {
      const width = 60 + 40 * index;
      return total + 0.6 ** index / (1 + ((frequency - formant) / width) ** 2);
    }, 0.02);
    sum += (level / Math.sqrt(harmonic)) * Math.sin(2 * Math.PI * harmonic * cycles);
  }
  return sum;
}

/** Noise of -1 to 1 that a position decides. */
function hash(position: number): number {
  const value = Math.sin(Math.round(position) * 12.9898) * 43_758.5453;
  return 2 * (value - Math.floor(value)) - 1;
}

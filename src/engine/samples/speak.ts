/** Frequencies of a vowel's first three formants, Hz (Peterson and Barney, 1952). */
const vowels: readonly (readonly [number, number, number])[] = [
  [730, 1090, 2440],
  [270, 2290, 3010],
  [300, 870, 2240],
  [530, 1840, 2480],
  [570, 840, 2410],
  [660, 1720, 2410],
];

/** Widths of the formants, Hz (Klatt, 1980). */
const widths = [60, 90, 150] as const;

const syllableSeconds = 0.21;
/** Syllables of a phrase with the pause before it, and of the pause. */
const phrase = { syllables: 14, pause: 2 };
/** Makes speech as loud as recordings are: 26 dB below the largest value (ITU-T P.56). */
const loudness = 0.034;
/** Of a quiet room: 42 dB below the speech. */
const background = 0.0007;
/** Share of a value of the background that is in the next one: it falls by 6 dB an octave. */
const inertia = 0.95;
/** Values after which nothing of one is left. */
const memory = 512;

interface Stretch {
  /** Position of the first value in the utterance. */
  readonly start: number;
  readonly length: number;
  /** Values a second. */
  readonly rate: number;
}

/**
 * A stretch of an utterance: syllables of a vowel, as the harmonics of a gliding voice through the
 * resonances of a vocal tract, each after a hiss, with pauses between phrases. Of the room there is
 * little more than a hum: white noise would drown how a model takes the silence at high frequencies
 * of what microphones and codecs give. It depends on the position only, so that stretches join.
 */
export function speak({ start, length, rate }: Stretch): Float32Array {
  const sound = new Float32Array(length);
  let hum = 0;
  for (let index = -memory; index < length; index++) {
    const position = start + index;
    hum = inertia * hum + Math.sqrt(1 - inertia ** 2) * hash(position);
    if (index >= 0) sound[index] = speechAt(position / rate, rate) + background * hum;
  }
  return sound;
}

function speechAt(seconds: number, rate: number): number {
  const syllable = Math.floor(seconds / syllableSeconds);
  const within = seconds / syllableSeconds - syllable;
  if (syllable % phrase.syllables < phrase.pause) return 0;
  const noise = hash(seconds * rate) - hash(seconds * rate - 1);
  const amplitude = loudness * 10 ** (0.25 * hash(syllable + 1));
  const hiss = within < 0.25 ? Math.sin((within / 0.25) * Math.PI) * 0.2 : 0;
  const envelope = within < 0.2 ? 0 : Math.sin(((within - 0.2) / 0.8) * Math.PI);
  return amplitude * (envelope * voiceAt(seconds, syllable, rate) + hiss * noise);
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
    const gain = formants.reduce(
      (product, formant, index) => product * resonate(frequency, formant, widths[index] ?? 150),
      1,
    );
    sum += (gain / harmonic) * Math.sin(2 * Math.PI * harmonic * cycles);
  }
  return sum;
}

/** Gain of a resonance of two poles, 1 at low frequencies. */
function resonate(frequency: number, center: number, width: number): number {
  return center ** 2 / Math.hypot(center ** 2 - frequency ** 2, width * frequency);
}

/** Noise of -1 to 1 that a position decides. */
function hash(position: number): number {
  const value = Math.sin(Math.round(position) * 12.9898) * 43_758.5453;
  return 2 * (value - Math.floor(value)) - 1;
}

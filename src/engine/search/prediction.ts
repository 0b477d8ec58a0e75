import { maxSqnrDb } from "../../contract/jobs/telemetry.ts";
import type { Choice, Front } from "./front.ts";

/** A choice that was run: its SQNR where errors of weights were independent, and the real one, dB. */
interface Anchor {
  readonly added: number;
  readonly measured: number;
}

/** Predicts a choice's loss by what each weight costs, corrected by a few choices that were run. */
export class Prediction {
  readonly #front: Front;
  readonly #anchors: Anchor[] = [];

  constructor(front: Front) {
    this.#front = front;
  }

  addAnchor(choice: Choice, sqnrDb: number): void {
    this.#anchors.push({ added: this.#addNoise(choice), measured: sqnrDb });
    this.#anchors.sort((a, b) => a.added - b.added || a.measured - b.measured);
  }

  /** SQNR of the worst output, dB. */
  predict(choice: Choice): number {
    const added = this.#addNoise(choice);
    return limitDb(added + this.#correct(added));
  }

  #addNoise(choice: Choice): number {
    return noiseToDb(this.#front.sumNoise(choice));
  }

  /** Between two anchors in proportion, beyond them as at the nearest. */
  #correct(added: number): number {
    const low = this.#anchors.findLast((anchor) => anchor.added <= added);
    const high = this.#anchors.find((anchor) => anchor.added > added);
    const [atLow, atHigh] = [low, high].map((each) => each && each.measured - each.added);
    if (low === undefined || high === undefined) return atLow ?? atHigh ?? 0;
    const share = (added - low.added) / (high.added - low.added);
    return (atLow ?? 0) * (1 - share) + (atHigh ?? 0) * share;
  }
}

/** SQNR of the worst output, dB. */
export function noiseToDb(noise: readonly number[]): number {
  return limitDb(-10 * Math.log10(Math.max(0, ...noise)));
}

/** Noise relative to the signal at an SQNR. */
export function dbToNoise(decibels: number): number {
  return 10 ** (-decibels / 10);
}

function limitDb(decibels: number): number {
  return Math.min(maxSqnrDb, Math.max(-maxSqnrDb, decibels));
}

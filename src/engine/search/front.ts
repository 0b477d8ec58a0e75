import { at } from "../onnx/at.ts";

/** A way to store the weights of a unit: 0 is as they are. */
export interface UnitOption {
  readonly bytes: number;
  /**
   * Noise relative to the signal, of each output, where only this unit is so; undefined where it
   * is not known.
   */
  readonly noise: readonly number[] | undefined;
}

/** What is chosen for each unit: a position among its options. */
export type Choice = readonly number[];

/** A unit's change from one option to a smaller one. */
interface Move {
  readonly unit: number;
  readonly from: number;
  readonly to: number;
  /** Noise, summed up over outputs, for each byte that is saved. */
  readonly price: number;
}

/**
 * The front of size and noise by the model of additive noise: errors of weights are independent of
 * each other, so that their powers add up at the outputs. Each prefix of the moves, cheapest first,
 * is optimal for some price of a byte (the Lagrangian of the knapsack problem: Everett, Generalized
 * Lagrange multiplier method, 1963).
 */
export class Front {
  readonly units: readonly (readonly UnitOption[])[];
  readonly #moves: readonly Move[];

  constructor(units: readonly (readonly UnitOption[])[]) {
    this.units = units;
    this.#moves = units.flatMap(listMoves).toSorted((a, b) => a.price - b.price);
  }

  get length(): number {
    return this.#moves.length;
  }

  /** What the moves lead to that come first. */
  takeMoves(count: number): Choice {
    const choice = this.units.map(() => 0);
    for (const { unit, to } of this.#moves.slice(0, count)) choice[unit] = to;
    return choice;
  }

  /** The cheapest moves as long as no output has more noise than the limit; others are skipped. */
  chooseWithin(limit: number): Choice {
    const choice = this.units.map(() => 0);
    for (const { unit, from, to } of this.#moves) {
      if (choice[unit] !== from) continue;
      choice[unit] = to;
      if (Math.max(...this.sumNoise(choice)) > limit) choice[unit] = from;
    }
    return choice;
  }

  /**
   * The cheapest moves until no more bytes are left than the limit; what they saved too much is spent.
   * A last move that saves far too much is left out where others in its place cost less noise.
   */
  chooseBytes(limit: number): Choice {
    const skipped = new Set<Move>();
    let { choice, last } = this.#takeUntil(limit, skipped);
    while (last !== undefined) {
      const other = this.#takeUntil(limit, skipped.add(last));
      const noises = [choice, other.choice].map((each) => sum(this.sumNoise(each)));
      if (this.sumBytes(other.choice) > limit || at(noises, 1) >= at(noises, 0)) return choice;
      ({ choice, last } = other);
    }
    return choice;
  }

  #takeUntil(limit: number, skipped: ReadonlySet<Move>) {
    let choice = this.units.map(() => 0);
    let last: Move | undefined;
    for (const move of this.#moves) {
      if (this.sumBytes(choice) <= limit) break;
      if (skipped.has(move) || choice[move.unit] !== move.from) continue;
      choice[move.unit] = move.to;
      last = move;
    }
    for (;;) {
      const next = this.#findPurchase(choice, limit - this.sumBytes(choice));
      if (next === undefined) return { choice, last };
      choice = choice.map((option, unit) => (unit === next.unit ? next.to : option));
    }
  }

  /** What takes most noise away for each byte that it costs, within so many bytes. */
  #findPurchase(choice: Choice, bytes: number): Move | undefined {
    let best: Move | undefined;
    for (const [unit, options] of this.units.entries()) {
      const from = choice[unit] ?? 0;
      const current = options[from];
      if (current?.noise === undefined) continue;
      for (const [to, option] of options.entries()) {
        const cost = option.bytes - current.bytes;
        if (cost <= 0 || cost > bytes || option.noise === undefined) continue;
        const price = (sum(current.noise) - sum(option.noise)) / cost;
        if (price > (best?.price ?? 0)) best = { unit, from, to, price };
      }
    }
    return best;
  }

  /** Of each output. */
  sumNoise(choice: Choice): number[] {
    const sums: number[] = [];
    for (const [unit, option] of choice.entries()) {
      for (const [output, noise] of (this.units[unit]?.[option]?.noise ?? []).entries()) {
        sums[output] = (sums[output] ?? 0) + noise;
      }
    }
    return sums;
  }

  sumBytes(choice: Choice): number {
    return choice.reduce((sum, option, unit) => sum + (this.units[unit]?.[option]?.bytes ?? 0), 0);
  }
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0);
}

/** The moves along the lower convex hull of a unit's options, from the first option on. */
function listMoves(options: readonly UnitOption[], unit: number): Move[] {
  const moves: Move[] = [];
  let from = 0;
  for (;;) {
    const current = options[from];
    if (current === undefined) return moves;
    let best: Move | undefined;
    for (const [to, option] of options.entries()) {
      const saved = current.bytes - option.bytes;
      if (saved <= 0 || option.noise === undefined) continue;
      const price = (sum(option.noise) - sum(current.noise ?? [])) / saved;
      const isBetter =
        best === undefined ||
        price < best.price ||
        (price === best.price && option.bytes < (options[best.to]?.bytes ?? 0));
      if (isBetter) best = { unit, from, to, price };
    }
    if (best === undefined) return moves;
    moves.push(best);
    from = best.to;
  }
}

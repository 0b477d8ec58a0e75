import { setBounded } from "./bounded-map.ts";

interface TokenBucketOptions {
  /** Tokens of a full bucket. */
  readonly capacity: number;
  /** Time after which a token is added, milliseconds. */
  readonly refillMs: number;
  /** Keys that are remembered; the one used least recently is forgotten first. */
  readonly maxKeys: number;
}

interface Bucket {
  readonly tokens: number;
  readonly atMs: number;
}

/** Limits rates: a token bucket for each key, such as a caller or an object. */
export class TokenBuckets {
  readonly #options: TokenBucketOptions;
  readonly #buckets = new Map<string, Bucket>();

  constructor(options: TokenBucketOptions) {
    this.#options = options;
  }

  /** Tokens of the key's bucket, with the fraction of the next one. */
  count(key: string, nowMs: number): number {
    const { capacity, refillMs } = this.#options;
    const known = this.#buckets.get(key);
    if (known === undefined) return capacity;
    return Math.min(capacity, known.tokens + Math.max(0, nowMs - known.atMs) / refillMs);
  }

  /** Takes as many tokens as something costs; false, and takes none, where there are fewer. */
  take(key: string, nowMs: number, cost = 1): boolean {
    const tokens = this.count(key, nowMs);
    const isTaken = tokens >= cost;
    // Also of a refusal: a clock that was set back would refuse until it is where it was.
    const bucket = { tokens: isTaken ? tokens - cost : tokens, atMs: nowMs };
    setBounded(this.#buckets, key, bucket, this.#options.maxKeys);
    return isTaken;
  }
}

import { ServiceError } from "../../contract/errors.ts";
import { TokenBuckets } from "../../limits/token-buckets.ts";

/** Tokens that were not reviewed before: anybody can write them. */
const strangerReviewsPerSecond = 20;

/** Limits the reviews of tokens that may be made up, so that they cost the API server little. */
export class UnknownTokenLimit {
  readonly #reviews = new TokenBuckets({
    capacity: strangerReviewsPerSecond,
    refillMs: 1000 / strangerReviewsPerSecond,
    maxKeys: 1,
  });

  /** @throws ServiceError unavailable */
  count(now: number): void {
    if (this.#reviews.take("strangers", now)) return;
    const message = "Too many unknown tokens are being checked";
    throw new ServiceError("unavailable", message, { headers: { "retry-after": "1" } });
  }
}

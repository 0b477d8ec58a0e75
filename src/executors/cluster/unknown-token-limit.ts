import { ServiceError } from "../../contract/errors.ts";

/** Tokens that were not reviewed before: anybody can write them. */
const strangerReviewsPerSecond = 20;

/** Limits the reviews of tokens that may be made up, so that they cost the API server little. */
export class UnknownTokenLimit {
  #second = 0;
  #reviews = 0;

  /** @throws ServiceError unavailable */
  count(now: number): void {
    const second = Math.floor(now / 1000);
    if (this.#second !== second) this.#reviews = 0;
    this.#second = second;
    this.#reviews += 1;
    if (this.#reviews <= strangerReviewsPerSecond) return;
    const message = "Too many tokens that are not known are being checked";
    throw new ServiceError("unavailable", message, { headers: { "retry-after": "1" } });
  }
}

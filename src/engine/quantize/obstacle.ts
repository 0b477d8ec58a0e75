/** Why a weight cannot be stored or taken in a form. */
export class Obstacle {
  /** A sentence without its first word, which is the weight's name. */
  readonly reason: string;

  constructor(reason: string) {
    this.reason = reason;
  }
}

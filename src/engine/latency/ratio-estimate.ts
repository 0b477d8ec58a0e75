/** A ratio of two latencies with the interval that it is known to lie in. */
export interface RatioInterval {
  readonly ratio: number;
  readonly low: number;
  readonly high: number;
  /** Times that each of the models was opened. */
  readonly sessions: number;
}

/**
 * Least standard deviation of the logarithms that an interval is computed with. Sessions of one
 * file differ by 1 to 3 %, so a smaller one among few sessions is chance.
 */
const leastDeviation = 0.004;

/**
 * The t-interval of a ratio by the logarithms of it that were measured in several sessions, two or
 * more: the interval misses the ratio with a probability of `errorRate`.
 */
export function estimateRatio(logRatios: readonly number[], errorRate: number): RatioInterval {
  const sessions = logRatios.length;
  const mean = logRatios.reduce((sum, value) => sum + value, 0) / sessions;
  const squares = logRatios.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  const deviation = Math.max(leastDeviation, Math.sqrt(squares / (sessions - 1)));
  const halfWidth = (criticalT(errorRate, sessions - 1) * deviation) / Math.sqrt(sessions);
  return {
    ratio: Math.exp(mean),
    low: Math.exp(mean - halfWidth),
    high: Math.min(Math.exp(mean + halfWidth), Number.MAX_VALUE),
    sessions,
  };
}

/** Half the interval's width relative to the ratio: 0.01 for 0.98 within 0.97 and 0.99. */
export function relativeHalfWidth({ low, high }: RatioInterval): number {
  return Math.log(high / low) / 2;
}

/**
 * The value that a variable of Student's t distribution exceeds, on either side, with a probability
 * of `errorRate`.
 * @param degrees degrees of freedom, a positive integer
 */
export function criticalT(errorRate: number, degrees: number): number {
  let [low, high] = [0, 1];
  while (centralProbability(high, degrees) < 1 - errorRate) [low, high] = [high, 2 * high];
  while (high - low > 1e-9 * high) {
    const middle = (low + high) / 2;
    if (centralProbability(middle, degrees) < 1 - errorRate) low = middle;
    else high = middle;
  }
  return (low + high) / 2;
}

/** Probability of -t to t: Abramowitz and Stegun, 26.7.3 and 26.7.4. */
function centralProbability(t: number, degrees: number): number {
  const angle = Math.atan(t / Math.sqrt(degrees));
  const cosine = Math.cos(angle);
  const isOdd = degrees % 2 === 1;
  let term = isOdd ? cosine : 1;
  let sum = degrees === 1 ? 0 : term;
  for (let power = isOdd ? 3 : 2; power <= degrees - 2; power += 2) {
    term *= ((power - 1) / power) * cosine ** 2;
    sum += term;
  }
  const product = Math.sin(angle) * sum;
  return isOdd ? (2 / Math.PI) * (angle + product) : product;
}

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

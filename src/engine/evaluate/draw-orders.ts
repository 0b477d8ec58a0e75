import type { Order } from "./latency-round.ts";
import { createRandom } from "./random.ts";

/**
 * Which model each round opens first: drawn by lot, and the other one in the round after it, since
 * the place in the process's memory makes a difference.
 */
export function* drawOrders(): Generator<Order, never, undefined> {
  const random = createRandom(0);
  for (;;) {
    const order: Order = random() < 0.5 ? ["original", "result"] : ["result", "original"];
    yield order;
    yield [order[1], order[0]];
  }
}

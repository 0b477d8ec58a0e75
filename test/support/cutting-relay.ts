import assert from "node:assert/strict";
import { randomInt } from "node:crypto";
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import type { TestContext } from "node:test";

interface CuttingRelay {
  readonly origin: string;
  /** What went through in both directions, and how many connections broke. */
  readonly counted: { bytes: number; cuts: number };
}

/** Breaks each connection to a server at a random byte between two numbers of bytes. */
export async function startCuttingRelay(
  t: Pick<TestContext, "after">,
  target: string,
  [least, most]: readonly [number, number],
): Promise<CuttingRelay> {
  const { hostname, port } = new URL(target);
  const counted = { bytes: 0, cuts: 0 };
  const clients = new Set<Socket>();
  const server = createServer((client) => {
    clients.add(client);
    client.on("close", () => clients.delete(client));
    const upstream = connect(Number(port), hostname);
    const budget = { left: randomInt(least, most), counted };
    passUntilCut(client, upstream, budget);
    passUntilCut(upstream, client, budget);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.close();
    for (const client of clients) client.destroy();
  });
  const address = server.address();
  assert.ok(typeof address === "object" && address !== null);
  return { origin: `http://127.0.0.1:${address.port}`, counted };
}

interface Budget {
  left: number;
  readonly counted: CuttingRelay["counted"];
}

/** What comes before the cut arrives, and nothing after it. */
function passUntilCut(from: Socket, to: Socket, budget: Budget): void {
  from.on("error", () => to.destroy());
  from.on("close", () => to.end());
  from.on("data", (chunk: Buffer) => {
    if (budget.left === 0) return;
    const piece = chunk.subarray(0, budget.left);
    budget.left -= piece.length;
    budget.counted.bytes += piece.length;
    if (budget.left === 0) {
      budget.counted.cuts++;
      to.end(piece, () => to.destroy());
      from.destroy();
    } else if (!to.write(piece)) {
      from.pause();
      to.once("drain", () => from.resume());
    }
  });
}

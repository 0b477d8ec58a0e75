import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { ConnectionLimits } from "../contract/connection-limits.ts";

interface Exchange {
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
  /** Bytes of the connection when it last moved, and when that was. */
  received: Progress;
  sent: Progress;
}

interface Progress {
  readonly bytes: number;
  readonly at: number;
}

interface StalledConnections extends Disposable {
  /** Watches a request until it is answered and its body is read. */
  watch(incoming: IncomingMessage, outgoing: ServerResponse): void;
}

/** Ends connections whose client neither sends what it announced nor takes what it asked for. */
export function endStalledConnections(limits: ConnectionLimits): StalledConnections {
  const exchanges = new Set<Exchange>();
  const check = () => {
    for (const exchange of exchanges) {
      if (isOver(exchange)) exchanges.delete(exchange);
      else if (isStalled(exchange, limits)) exchange.incoming.socket.destroy();
    }
  };
  const interval = Math.min(limits.bodyWindowSeconds, limits.readerStallSeconds) * 250;
  const timer = setInterval(check, interval).unref();
  return {
    watch(incoming, outgoing) {
      const { socket } = incoming;
      const at = performance.now();
      const received = { bytes: socket.bytesRead, at };
      const sent = { bytes: socket.bytesWritten, at };
      const exchange = { incoming, outgoing, received, sent };
      exchanges.add(exchange);
      // Those of some seconds would grow old in memory, and be collected at a high price.
      outgoing.once("close", () => {
        if (isOver(exchange)) exchanges.delete(exchange);
      });
    },
    [Symbol.dispose]: () => clearInterval(timer),
  };
}

function isOver({ incoming, outgoing }: Exchange): boolean {
  return incoming.socket.destroyed || (incoming.complete && outgoing.writableFinished);
}

function isStalled(exchange: Exchange, limits: ConnectionLimits): boolean {
  const { incoming, outgoing } = exchange;
  const { socket } = incoming;
  const now = performance.now();
  const waitsForClient = !incoming.complete && incoming.readableLength === 0;
  exchange.received = progress(exchange.received, {
    now,
    bytes: socket.bytesRead,
    enough: waitsForClient ? limits.bodyWindowBytes : 0,
  });
  exchange.sent = progress(exchange.sent, {
    now,
    bytes: takenBytes(socket),
    enough: outgoing.writableLength > 0 ? 1 : 0,
  });
  return (
    now - exchange.received.at > limits.bodyWindowSeconds * 1000 ||
    now - exchange.sent.at > limits.readerStallSeconds * 1000
  );
}

/** Bytes that the system has taken: `bytesWritten` also counts those that wait here. */
function takenBytes(socket: Socket): number {
  return socket.bytesWritten - socket.writableLength;
}

/** What is known of a direction after a look at it; it moved where `enough` bytes came. */
function progress(
  before: Progress,
  { now, bytes, enough }: { now: number; bytes: number; enough: number },
): Progress {
  return bytes - before.bytes >= enough ? { bytes, at: now } : before;
}

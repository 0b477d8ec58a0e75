import type { IncomingMessage, ServerResponse } from "node:http";
import type { ConnectionLimits } from "../contract/connection-limits.ts";

/**
 * Reads on for a while where a request is answered before its body has come: closing the
 * connection would make the client's system throw the answer away.
 */
export function lingerAfterAnswer(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  limits: ConnectionLimits,
): void {
  if (!hasBody(incoming)) return;
  // Node would close a connection that its client wants closed as soon as the answer is sent.
  const isLast = !outgoing.shouldKeepAlive;
  outgoing.shouldKeepAlive = true;
  const close = () => {
    if (isLast) incoming.socket.destroySoon();
  };
  outgoing.once("finish", () => {
    if (incoming.complete) close();
    else readRest(incoming, limits, close);
  });
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
}

function readRest(incoming: IncomingMessage, limits: ConnectionLimits, end: () => void): void {
  const timer = setTimeout(() => incoming.socket.destroy(), limits.lingerSeconds * 1000);
  incoming.once("close", () => clearTimeout(timer));
  incoming.once("end", end);
  let bytes = 0;
  // An earlier reader of the body keeps what it reads in memory.
  incoming.removeAllListeners("data");
  incoming.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > limits.lingerBytes) incoming.socket.destroy();
  });
  incoming.resume();
}

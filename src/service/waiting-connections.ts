import type { Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";

/**
 * Bounds the connections of a server. Where there are too many, those make room that have been
 * waiting longest for a request: idle ones, and those that never send one.
 */
export function boundConnections(server: Server, maxConnections: number): void {
  let connections = 0;
  /** In the order in which they began to wait. */
  const waiting = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    connections += 1;
    waiting.add(socket);
    socket.once("close", () => {
      connections -= 1;
      waiting.delete(socket);
    });
    if (connections <= maxConnections) return;
    const [longest = socket] = waiting;
    longest.destroy();
  });
  server.on("request", ({ socket }, outgoing: ServerResponse) => {
    waiting.delete(socket);
    outgoing.once("close", () => {
      if (!socket.destroyed) waiting.add(socket);
    });
  });
}

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Server, Socket } from "node:net";
import type { ConnectionLimits } from "../../contract/connection-limits.ts";
import { addressGroup, plainAddress } from "../../server/http/remote-address.ts";

interface ConnectionBounds {
  readonly connections: number;
  readonly connectionsPerAddress: number;
  /** Whose connections are those of many. */
  readonly isTrustedProxy: (address: string) => boolean;
}

/** Connections in the order in which they were made, or began to wait for a request. */
class Connections {
  readonly all = new Set<Socket>();
  readonly waiting = new Set<Socket>();
}

/**
 * Bounds the connections of a server. Where there are too many, those make room that have been
 * waiting longest for a request: idle ones, and those that never send one. First are those of an
 * address that has more than its share, whatever they do.
 */
export function boundConnections(server: Server, bounds: ConnectionBounds): void {
  const every = new Connections();
  const crowded = new Set<Connections>();
  const findOwn = groupByAddress(bounds, crowded);
  const accepted = new Map<string, Socket>();
  server.on("connection", (socket: Socket) => {
    const peer = peerName(socket);
    accepted.set(peer, socket);
    socket.once("close", () => {
      if (accepted.get(peer) === socket) accepted.delete(peer);
    });
    for (const group of [every, ...findOwn(socket)]) {
      group.all.add(socket);
      group.waiting.add(socket);
      socket.once("close", () => {
        group.all.delete(socket);
        group.waiting.delete(socket);
      });
    }
    if (every.all.size > bounds.connections) (findSpare(crowded, every) ?? socket).destroy();
  });
  server.on("request", (incoming: IncomingMessage, outgoing: ServerResponse) => {
    // Requests over TLS have a socket of their own.
    const socket = accepted.get(peerName(incoming.socket)) ?? incoming.socket;
    const groups = [every, ...findOwn(socket)];
    for (const { waiting } of groups) waiting.delete(socket);
    outgoing.once("close", () => {
      if (socket.destroyed) return;
      for (const { waiting } of groups) waiting.add(socket);
    });
  });
}

function peerName({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress}|${remotePort}`;
}

/** Gives the connections of a socket's address, if they are bounded. Fills those with too many. */
function groupByAddress(
  { connectionsPerAddress, isTrustedProxy }: ConnectionBounds,
  crowded: Set<Connections>,
): (socket: Socket) => Connections[] {
  const groups = new Map<string, Connections>();
  const known = new WeakMap<Socket, Connections>();
  return (socket) => {
    const address = plainAddress(socket.remoteAddress ?? "");
    const own = known.get(socket);
    if (own !== undefined) return [own];
    if (isTrustedProxy(address)) return [];
    const name = addressGroup(address);
    const group = groups.get(name) ?? new Connections();
    groups.set(name, group);
    known.set(socket, group);
    if (group.all.size >= connectionsPerAddress) crowded.add(group);
    socket.once("close", () => {
      if (group.all.size <= connectionsPerAddress + 1) crowded.delete(group);
      if (group.all.size <= 1) groups.delete(name);
    });
    return [group];
  };
}

function findSpare(
  crowded: ReadonlySet<Connections>,
  { waiting }: Connections,
): Socket | undefined {
  const [largest] = [...crowded].toSorted((a, b) => b.all.size - a.all.size);
  const [spare] = [...first(largest?.waiting), ...first(largest?.all), ...first(waiting)];
  return spare;
}

function first(sockets: ReadonlySet<Socket> = new Set()): Socket[] {
  const [oldest] = sockets;
  return oldest === undefined ? [] : [oldest];
}

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

/** Ends connections whose client neither sends what it announced nor takes what it asked for. */
export function endStalledConnections(limits: ConnectionLimits): Disposable & {
  /** Watches a request until it is answered and its body is read. */
  watch(incoming: IncomingMessage, outgoing: ServerResponse): void;
} {
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

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Server, Socket } from "node:net";
import { addressGroup, plainAddress } from "../server/address-group.ts";

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

import type { Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { addressGroup, plainAddress } from "../server/address-group.ts";

interface ConnectionBounds {
  readonly connections: number;
  readonly connectionsPerAddress: number;
  /** Whose connections are those of many. */
  readonly isTrustedProxy: (address: string) => boolean;
}

/** Connections in the order in which they began to wait for a request, or were made. */
interface AddressConnections {
  readonly all: Set<Socket>;
  readonly waiting: Set<Socket>;
}

/**
 * Bounds the connections of a server. Where there are too many, those make room that have been
 * waiting longest for a request: idle ones, and those that never send one. First are those of an
 * address that has more than its share, whatever they do.
 */
export function boundConnections(server: Server, bounds: ConnectionBounds): void {
  const { connections: maxConnections, connectionsPerAddress, isTrustedProxy } = bounds;
  let connections = 0;
  const waiting = new Set<Socket>();
  const addresses = new Map<string, AddressConnections>();
  const crowded = new Set<AddressConnections>();
  const own = new WeakMap<Socket, AddressConnections>();

  const join = (socket: Socket) => {
    const address = plainAddress(socket.remoteAddress ?? "");
    if (isTrustedProxy(address)) return;
    const group = addressGroup(address);
    const ofAddress = addresses.get(group) ?? { all: new Set(), waiting: new Set() };
    addresses.set(group, ofAddress);
    own.set(socket, ofAddress);
    ofAddress.all.add(socket);
    if (ofAddress.all.size > connectionsPerAddress) crowded.add(ofAddress);
    socket.once("close", () => {
      ofAddress.all.delete(socket);
      if (ofAddress.all.size <= connectionsPerAddress) crowded.delete(ofAddress);
      if (ofAddress.all.size === 0) addresses.delete(group);
    });
  };
  const setWaiting = (socket: Socket, isWaiting: boolean) => {
    for (const set of [waiting, own.get(socket)?.waiting]) {
      if (isWaiting) set?.add(socket);
      else set?.delete(socket);
    }
  };

  server.on("connection", (socket: Socket) => {
    connections += 1;
    join(socket);
    setWaiting(socket, true);
    socket.once("close", () => {
      connections -= 1;
      setWaiting(socket, false);
    });
    if (connections > maxConnections) (findSpare(crowded, waiting) ?? socket).destroy();
  });
  server.on("request", ({ socket }, outgoing: ServerResponse) => {
    setWaiting(socket, false);
    outgoing.once("close", () => {
      if (!socket.destroyed) setWaiting(socket, true);
    });
  });
}

function findSpare(
  crowded: ReadonlySet<AddressConnections>,
  waiting: ReadonlySet<Socket>,
): Socket | undefined {
  const [largest] = [...crowded].toSorted((a, b) => b.all.size - a.all.size);
  const [spare] = [...first(largest?.waiting), ...first(largest?.all), ...first(waiting)];
  return spare;
}

function first(sockets: ReadonlySet<Socket> = new Set()): Socket[] {
  const [oldest] = sockets;
  return oldest === undefined ? [] : [oldest];
}

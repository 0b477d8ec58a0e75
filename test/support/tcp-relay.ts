import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";

/** Passes bytes on to a server, until it is stopped. */
export interface TcpRelay extends AsyncDisposable {
  readonly port: string;
  /** Connections that clients have made so far. */
  readonly connections: () => number;
  /** Ends every connection. New ones are made as before. */
  readonly cut: () => void;
  /** Ends every connection and every new one, until `restore()`. */
  readonly interrupt: () => void;
  /** Passes nothing on until `restore()`, and then what was sent meanwhile. */
  readonly silence: () => void;
  readonly restore: () => void;
  /** Swallows what the present connections send, like a network that is gone. New ones are made as before. */
  readonly swallow: () => void;
}

type SocketPair = readonly [Socket, Socket];

export async function startTcpRelay(url: string): Promise<TcpRelay> {
  const { hostname, port } = new URL(url);
  const pairs = new Set<SocketPair>();
  let connections = 0;
  let interrupted = false;
  let silent = false;
  const server = createServer((client) => {
    if (interrupted) return void client.destroy();
    connections += 1;
    const pair = [client, connect(Number(port), hostname)] as const;
    pairs.add(pair);
    linkEnds(pair, () => pairs.delete(pair));
    if (!silent) passBytes(pair);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const cut = () => {
    for (const [client] of pairs) client.destroy();
  };
  return {
    port: String((server.address() as AddressInfo).port),
    connections: () => connections,
    cut,
    interrupt() {
      interrupted = true;
      cut();
    },
    silence() {
      silent = true;
      for (const pair of pairs) for (const socket of pair) socket.unpipe();
    },
    restore() {
      interrupted = false;
      if (silent) for (const pair of pairs) passBytes(pair);
      silent = false;
    },
    swallow() {
      for (const [client, upstream] of pairs) {
        client.unpipe().resume();
        upstream.unpipe().resume();
      }
    },
    async [Symbol.asyncDispose]() {
      cut();
      server.close();
      await once(server, "close");
    },
  };
}

function passBytes([client, upstream]: SocketPair): void {
  client.pipe(upstream);
  upstream.pipe(client);
}

/** When one end breaks, so does the other. */
function linkEnds([client, upstream]: SocketPair, onClose: () => void): void {
  for (const [from, to] of [
    [client, upstream],
    [upstream, client],
  ] as const) {
    from.on("error", () => to.destroy());
    from.on("close", () => {
      to.destroy();
      onClose();
    });
  }
}

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
  readonly restore: () => void;
  /** Swallows what the present connections send, like a network that is gone. New ones are made as before. */
  readonly swallow: () => void;
}

export async function startTcpRelay(url: string): Promise<TcpRelay> {
  const { hostname, port } = new URL(url);
  const pairs = new Set<readonly [Socket, Socket]>();
  let connections = 0;
  let interrupted = false;
  const server = createServer((client) => {
    if (interrupted) return void client.destroy();
    connections += 1;
    const pair = [client, connect(Number(port), hostname)] as const;
    pairs.add(pair);
    for (const [from, to] of [pair, pair.toReversed()] as [Socket, Socket][]) {
      from.pipe(to);
      from.on("error", () => to.destroy());
      from.on("close", () => {
        to.destroy();
        pairs.delete(pair);
      });
    }
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
    restore() {
      interrupted = false;
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

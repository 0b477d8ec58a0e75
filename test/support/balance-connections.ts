import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";

interface Balancer extends AsyncDisposable {
  readonly origin: string;
  /** Ports of the replicas that take connections. */
  readonly ports: Set<number>;
}

/** One address for many replicas: each connection goes to the next one that takes it. */
export async function balanceConnections(): Promise<Balancer> {
  const ports = new Set<number>();
  const sockets = new Set<Socket>();
  let turn = 0;
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket)).on("error", () => socket.destroy());
    const order = [...ports];
    const first = turn++;
    void forward(
      socket,
      order.map((_, i) => order[(first + i) % order.length] ?? 0),
    );
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const port = address !== null && typeof address === "object" ? address.port : 0;
  return {
    origin: `http://127.0.0.1:${port}`,
    ports,
    async [Symbol.asyncDispose]() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

async function forward(socket: Socket, ports: readonly number[]): Promise<void> {
  for (const port of ports) {
    const replica = connect(port, "127.0.0.1");
    const isConnected = await Promise.race([
      once(replica, "connect").then(() => true),
      once(replica, "close").then(() => false),
    ]).catch(() => false);
    if (!isConnected) continue;
    // The end of an answer may still have to be sent.
    replica.on("error", () => socket.destroy()).on("close", () => socket.destroySoon());
    socket.on("close", () => replica.destroy());
    socket.pipe(replica).pipe(socket);
    return;
  }
  socket.destroy();
}

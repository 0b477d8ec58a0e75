import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { percentile } from "../src/engine/latency/percentile.ts";
import { startRunningService } from "../test/support/running-service.ts";
import { type BenchRow, limitRow, reportBench } from "./result.ts";

/**
 * Clients that begin requests and never end them, from 5,000 sockets at once: how long the service
 * answers others meanwhile, and when the last of the sockets is gone.
 */
const [, socketCount = "5000"] = process.argv.slice(2);
const count = Number(socketCount);
const goneSeconds = 60;
const probeEveryMs = 50;
const idleProbes = 100;
/** Sockets that are opened at once: the system refuses more than it keeps waiting. */
const openAtOnce = 200;
const halves = [
  "",
  "GET /healthz HTTP/1.1\r\nHost: serv",
  "POST /v1/tokens/exchange HTTP/1.1\r\nHost: service\r\nContent-Length: 100\r\n\r\nhalf",
];

const order = (a: number, b: number) => a - b;

await using cleanup = new AsyncDisposableStack();
const owner = { after: (work: () => unknown) => cleanup.defer(async () => void (await work())) };
const { baseUrl } = await startRunningService(owner);
const { port, origin } = new URL(baseUrl);
await reportBench("sockets", await measure());

async function measure(): Promise<readonly BenchRow[]> {
  const idle: number[] = [];
  for (let i = 0; i < idleProbes; i++) idle.push(await probe());
  const start = performance.now();
  const state = { open: 0 };
  for (let i = 0; i < count; i += openAtOnce) await openSockets(i, state);
  const openedSeconds = (performance.now() - start) / 1000;
  const busy: number[] = [];
  while (state.open > 0 && performance.now() - start < 2 * goneSeconds * 1000) {
    busy.push(await probe());
    await delay(probeEveryMs);
  }
  const lastSeconds = (performance.now() - start) / 1000;
  const compared = {
    peer: percentile(idle.toSorted(order), 0.99),
    bar: "beside that of no sockets",
    met: null,
  };
  return [
    limitRow(`${count} sockets are gone`, "s", lastSeconds, goneSeconds),
    limitRow("sockets that are left", "sockets", state.open, 0),
    { what: "they are opened", unit: "s", ours: openedSeconds, peer: null, bar: "", met: null },
    {
      what: "GET /healthz meanwhile, p99",
      unit: "ms",
      ours: percentile(busy.toSorted(order), 0.99),
      ...compared,
    },
    { what: "GET /healthz, slowest", unit: "ms", ours: Math.max(...busy), ...compared },
  ];
}

async function openSockets(from: number, state: { open: number }): Promise<void> {
  const sockets = Array.from({ length: Math.min(openAtOnce, count - from) }, async (_, i) => {
    const socket = connect(Number(port), "127.0.0.1").on("error", () => {});
    await once(socket, "connect");
    state.open += 1;
    socket.once("close", () => (state.open -= 1));
    beginRequest(socket, halves[(from + i) % halves.length] ?? "");
  });
  await Promise.all(sockets);
}

function beginRequest(socket: Socket, half: string): void {
  socket.resume();
  socket.write(half);
}

/** Milliseconds that a request on a connection of its own takes. */
async function probe(): Promise<number> {
  const start = performance.now();
  const answer = await fetch(`${origin}/healthz`, { headers: { connection: "close" } });
  await answer.text();
  if (!answer.ok) throw new Error(`GET /healthz was answered with ${answer.status}`);
  return performance.now() - start;
}

import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { hashSecret } from "../../src/auth/access-token.ts";
import { openRecords } from "../../src/records/open-records.ts";
import { makeNewJob } from "../../test/records/new-jobs.ts";

const eventsPerReport = 10;
const secret = "worker-of-the-bench";

interface Following {
  /** Of the service, without a path. */
  readonly origin: string;
  readonly token: string;
  readonly database: string;
  readonly followers: number;
  readonly linesPerSecond: number;
  readonly seconds: number;
  /** Seconds of processor time that the service has used so far. */
  readonly cpuSeconds: () => Promise<number>;
}

interface FollowFigures {
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly cores: number;
  readonly linesMissing: number;
}

/** A log that grows evenly while many read it: how old its lines are when they arrive. */
export async function measureFollowers(following: Following): Promise<FollowFigures> {
  const { origin, followers, linesPerSecond, seconds } = following;
  const id = await startWork(following.database);
  const lag: number[] = [];
  const received = Array.from({ length: followers }, () => 0);
  const sockets: Socket[] = [];
  for (let index = 0; index < followers; index++) {
    const socket = await openFollower(following, id);
    socket.on("data", (data) => {
      const now = Date.now();
      const text = data.toString("latin1");
      for (const [, sent] of text.matchAll(/^sent at (\d+)$/gm)) {
        received[index] = (received[index] ?? 0) + 1;
        lag.push(now - Number(sent));
      }
    });
    sockets.push(socket);
  }
  const before = await following.cpuSeconds();
  const begin = performance.now();
  let seq = 1;
  while (performance.now() - begin < seconds * 1000) {
    const at = new Date().toISOString();
    const events = Array.from({ length: eventsPerReport }, () => ({
      seq: seq++,
      at,
      type: "log",
      stream: "stdout",
      text: `sent at ${Date.now()}`,
    }));
    const answer = await fetch(`${origin}/worker/v1/jobs/${id}/events`, {
      method: "POST",
      headers: { authorization: `Bearer ${secret}`, "content-type": "application/json" },
      body: JSON.stringify({ events }),
    });
    if (!answer.ok) throw new Error(await answer.text());
    await delay(Math.max(0, begin + ((seq - 1) / linesPerSecond) * 1000 - performance.now()));
  }
  const elapsed = (performance.now() - begin) / 1000;
  const used = (await following.cpuSeconds()) - before;
  await delay(1000);
  for (const socket of sockets) socket.destroy();
  lag.sort((a, b) => a - b);
  return {
    p50Ms: percentile(lag, 0.5),
    p99Ms: percentile(lag, 0.99),
    cores: used / elapsed,
    linesMissing: received.reduce((missing, lines) => missing + seq - 1 - lines, 0),
  };
}

/** A job that this process works on: the running service does not know that it waits. */
async function startWork(database: string): Promise<string> {
  const records = await openRecords(database, { now: () => new Date() });
  const { id } = await records.jobs.create("default", makeNewJob());
  await records.attempts.begin(id, hashSecret(secret));
  await records.close();
  return id;
}

async function openFollower({ origin, token }: Following, id: string): Promise<Socket> {
  const { hostname, port } = new URL(origin);
  const socket = connect(Number(port), hostname);
  await once(socket, "connect");
  socket.write(
    `GET /v1/jobs/${id}/logs HTTP/1.1\r\nhost: ${hostname}\r\nauthorization: Bearer ${token}\r\n\r\n`,
  );
  return socket;
}

function percentile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN;
}

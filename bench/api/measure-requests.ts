import { finished } from "node:stream/promises";
import { Pool } from "undici";

export interface RequestFigures {
  /** Of the first request, when nothing of its answer was read before. */
  readonly firstMs: number;
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

interface Load {
  readonly callers: number;
  readonly seconds: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly method?: "GET" | "POST";
  readonly body?: () => string;
}

const warmUpSeconds = 2;

/** The same request from several callers, each of whom waits for an answer before the next. */
export async function measureRequests(address: string, load: Load): Promise<RequestFigures> {
  const { origin, pathname, search } = new URL(address);
  const pool = new Pool(origin, { connections: load.callers });
  const call = async () => {
    const begin = performance.now();
    const { method = "GET", headers = {}, body } = load;
    const answer = await pool.request({
      path: `${pathname}${search}`,
      method,
      headers,
      body: body?.() ?? null,
    });
    if (answer.statusCode >= 300) {
      throw new Error(`${address}: ${answer.statusCode} ${await answer.body.text()}`);
    }
    // As text, answers would have this process collect garbage in the time of others.
    await finished(answer.body.resume());
    return performance.now() - begin;
  };
  const repeat = async (seconds: number) => {
    const end = performance.now() + seconds * 1000;
    const caller = async () => {
      const times: number[] = [];
      while (performance.now() < end) times.push(await call());
      return times;
    };
    return (await Promise.all(Array.from({ length: load.callers }, caller))).flat();
  };
  const firstMs = await call();
  await repeat(warmUpSeconds);
  const times = (await repeat(load.seconds)).toSorted((a, b) => a - b);
  await pool.close();
  return {
    firstMs,
    perSecond: times.length / load.seconds,
    p50Ms: percentile(times, 0.5),
    p99Ms: percentile(times, 0.99),
  };
}

export function percentile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN;
}

import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { request } from "undici";
import { z } from "zod";

export interface RequestFigures {
  /** Of the first request, when nothing of its answer was read before. */
  readonly firstMs: number;
  readonly perSecond: number;
  readonly p99Ms: number;
}

interface Load {
  readonly callers: number;
  readonly seconds: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly method?: "GET" | "POST";
  readonly body?: string;
}

const warmUpSeconds = 2;
const report = fileURLToPath(new URL("report.lua", import.meta.url));
const reported = z.object({
  requests: z.number(),
  seconds: z.number(),
  p99Ms: z.number(),
  failed: z.literal(0),
});

/**
 * The same request from several callers, each of whom waits for an answer before the next. Needs wrk
 * (https://github.com/wg/wrk), which leaves the processor to the server.
 */
export async function measureRequests(address: string, load: Load): Promise<RequestFigures> {
  const firstMs = await measureOne(address, load);
  await runWrk(address, { ...load, seconds: warmUpSeconds });
  const { requests, seconds, p99Ms } = await runWrk(address, load);
  return { firstMs, perSecond: requests / seconds, p99Ms };
}

async function measureOne(
  address: string,
  { method = "GET", headers = {}, body }: Load,
): Promise<number> {
  const begin = performance.now();
  const answer = await request(address, { method, headers, body: body ?? null });
  const text = await answer.body.text();
  if (answer.statusCode >= 300) throw new Error(`${address}: ${answer.statusCode} ${text}`);
  return performance.now() - begin;
}

async function runWrk(
  address: string,
  { callers, seconds, headers = {}, method = "GET", body }: Load,
): Promise<z.infer<typeof reported>> {
  const options = ["-t1", `-c${callers}`, `-d${seconds}s`, "--latency", "-s", report];
  for (const [name, value] of Object.entries(headers)) options.push("-H", `${name}: ${value}`);
  const request = body === undefined ? [method] : [method, body];
  const call = promisify(execFile)("wrk", [...options, address, "--", ...request]);
  const { stdout } = await call.catch((cause: unknown) => {
    throw new Error("wrk did not run: is it installed (apt-get install wrk)?", { cause });
  });
  return reported.parse(JSON.parse(stdout.trim().split("\n").at(-1) ?? ""));
}

import { createHash, randomBytes } from "node:crypto";
import { createServer } from "node:http";
import type { TestContext } from "node:test";
import { Pool } from "undici";
import { z } from "zod";
import { listenLocally } from "./listen-locally.ts";
import type { RunningService } from "./running-service.ts";

/** What a service has acknowledged. */
export interface Acknowledged {
  readonly jobs: string[];
  /** Hashes of uploads. */
  readonly models: string[];
}

interface Submitters {
  readonly acknowledged: Acknowledged;
  /** Ends when each caller has its last answer. */
  readonly ended: Promise<void>;
}

const created = z.object({ id: z.string() });
/** Requests of a caller between two uploads. */
const requestsPerUpload = 20;
const modelBytes = 5_000;

/** Settings with which the service takes as many requests as it can. */
export const unlimited = {
  MOS_WORKERS: "1",
  MOS_QUOTAS: "{requestsPerMinute: 1000000000, waitingJobs: 1000000000}",
  MOS_ALLOW_PRIVATE_ADDRESSES: "true",
};

/** Has callers submit jobs, and upload some models, one request after the other. */
export function submitUntil(
  signal: AbortSignal,
  { baseUrl, token }: Pick<RunningService, "baseUrl" | "token">,
  { callers, source, uploads }: { callers: number; source: string; uploads: boolean },
): Submitters {
  const acknowledged: Acknowledged = { jobs: [], models: [] };
  const { origin } = new URL(baseUrl);
  const pool = new Pool(origin, { connections: callers });
  const authorization = `Bearer ${token}`;
  const submit = async () => {
    const { statusCode, body } = await pool.request({
      method: "POST",
      path: "/v1/compress",
      headers: { authorization, "content-type": "application/json" },
      body: JSON.stringify({ model: { source }, target: "cpu" }),
    });
    if (statusCode !== 202) throw new Error(`${statusCode}: ${await body.text()}`);
    acknowledged.jobs.push(created.parse(await body.json()).id);
  };
  const upload = async () => {
    const content = randomBytes(modelBytes);
    const sha256 = createHash("sha256").update(content).digest("hex");
    const path = `/v1/models/${sha256}`;
    const { statusCode, body } = await pool.request({
      method: "PUT",
      path,
      headers: { authorization, "content-type": "application/octet-stream" },
      body: content,
    });
    await body.dump();
    if (statusCode !== 201) throw new Error(`The upload was answered ${statusCode}`);
    acknowledged.models.push(sha256);
  };
  const call = async () => {
    for (let i = 1; !signal.aborted; i++) {
      await (uploads && i % requestsPerUpload === 0 ? upload() : submit());
    }
  };
  const ended = Promise.all(Array.from({ length: callers }, call)).then(() => pool.close());
  // Callers await it later, when they stop the service too: a failure must not end the process now.
  ended.catch(() => {});
  return { acknowledged, ended };
}

/** The address of a host that takes connections and never answers: its jobs' worker waits. */
export async function startSilentHost(t: Pick<TestContext, "after">): Promise<string> {
  return `${await listenLocally(
    t,
    createServer(() => {}),
  )}/model.onnx`;
}

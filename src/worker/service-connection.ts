import { setTimeout as delay } from "node:timers/promises";
import { request } from "undici";
import type { z } from "zod";
import { type Assignment, assignment, workerEventsAnswer } from "../contract/worker.ts";

/** How long the service may be out of reach before the worker gives up. */
const outageLimitMs = 5 * 60_000;
const firstRetryMs = 100;
const lastRetryMs = 5_000;
const answerLimitMs = 30_000;

export interface ServiceConnection {
  findAssignment(signal: AbortSignal): Promise<Assignment>;
  /** Tells events, each as JSON. Telling one twice does no harm: the service knows it by its sequence number. */
  tell(events: readonly string[], signal: AbortSignal): Promise<z.infer<typeof workerEventsAnswer>>;
}

export interface ServiceAddress {
  readonly url: string;
  readonly jobId: string;
  readonly token: string;
}

/** The service as the worker of one job sees it. Calls are repeated while the service is out of reach. */
export function connectService({ url, jobId, token }: ServiceAddress): ServiceConnection {
  const base = `${url.replace(/\/$/, "")}/worker/v1/jobs/${jobId}`;
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  return {
    async findAssignment(signal) {
      return assignment.parse(await ask(base, { method: "GET", headers, signal }));
    },
    async tell(events, signal) {
      const body = `{"events":[${events.join(",")}]}`;
      return workerEventsAnswer.parse(await ask(`${base}/events`, { method: "POST", headers, body, signal }));
    },
  };
}

interface Question {
  readonly method: "GET" | "POST";
  readonly headers: Record<string, string>;
  readonly body?: string;
  readonly signal: AbortSignal;
}

/** The service's answer is final: the job is not this worker's, or the worker speaks another protocol. */
export class ServiceRefusal extends Error {}

async function ask(url: string, question: Question): Promise<unknown> {
  const giveUpAt = performance.now() + outageLimitMs;
  for (let retryMs = firstRetryMs; ; retryMs = Math.min(retryMs * 2, lastRetryMs)) {
    try {
      return await askOnce(url, question);
    } catch (error) {
      question.signal.throwIfAborted();
      if (error instanceof ServiceRefusal || performance.now() > giveUpAt) throw error;
    }
    await delay(retryMs, undefined, { signal: question.signal });
  }
}

async function askOnce(url: string, question: Question): Promise<unknown> {
  const answer = await request(url, { ...question, headersTimeout: answerLimitMs, bodyTimeout: answerLimitMs });
  if (answer.statusCode === 200) return answer.body.json();
  const text = await answer.body.text();
  const message = `The service answered ${answer.statusCode} to ${question.method} ${new URL(url).pathname}: ${text}`;
  throw answer.statusCode === 429 || answer.statusCode >= 500 ? new Error(message) : new ServiceRefusal(message);
}

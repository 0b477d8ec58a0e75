import { setTimeout as delay } from "node:timers/promises";
import { problem } from "../../src/contract/errors.ts";
import type { RunningService } from "../../test/support/running-service.ts";

const retryMs = 20;
/** What names an error of the disk. */
const named: ReadonlySet<string> = new Set(["unavailable", "storage_full"]);

interface Question {
  readonly method?: "GET" | "POST" | "PUT" | "DELETE";
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer<ArrayBuffer>;
}

export interface PersistentCaller {
  /** The first answer that is not a failing disk's. */
  ask(
    this: void,
    question: Question,
  ): Promise<{ readonly status: number; readonly content: Buffer }>;
  /** Failures by their codes; `cut` for answers that broke off. */
  readonly failures: ReadonlyMap<string, number>;
  /** Failures that do not name the disk. */
  readonly unnamed: ReadonlySet<string>;
}

/** Repeats its calls until they succeed, as long as the service runs. */
export function createPersistentCaller(service: RunningService): PersistentCaller {
  const failures = new Map<string, number>();
  const unnamed = new Set<string>();
  const count = (code: string) => failures.set(code, (failures.get(code) ?? 0) + 1);
  const askOnce = async ({ path, headers, ...init }: Question) => {
    const authorization = `Bearer ${service.token}`;
    const url = `${service.baseUrl}${path}`;
    const answer = await fetch(url, { ...init, headers: { authorization, ...headers } });
    const content = Buffer.from(await answer.arrayBuffer());
    if (answer.status < 500) return { status: answer.status, content };
    const { code, detail } = problem.parse(JSON.parse(content.toString()));
    count(code);
    if (!named.has(code)) unnamed.add(`${init.method ?? "GET"} ${path}: ${code}, ${detail}`);
    return undefined;
  };
  return {
    failures,
    unnamed,
    async ask(question) {
      while (service.process.exitCode === null && service.process.signalCode === null) {
        const answer = await askOnce(question).catch((error: unknown) => {
          if (!(error instanceof TypeError)) throw error;
          count("cut");
        });
        if (answer !== undefined) return answer;
        await delay(retryMs);
      }
      throw new Error("The service has ended");
    },
  };
}

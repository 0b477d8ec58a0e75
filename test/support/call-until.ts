import { setTimeout as delay } from "node:timers/promises";

const callers = 8;
/** Of a caller after each answer: hundreds of calls a second leave the processors to what is tested. */
const pauseMs = 20;

/** Calls a service by several callers until the signal; gives the failures. */
export async function callUntil(
  signal: AbortSignal,
  { origin, token }: { origin: string; token: string },
): Promise<{ calls: number; failures: string[] }> {
  const failures: string[] = [];
  let calls = 0;
  const headers = { authorization: `Bearer ${token}` };
  const call = async () => {
    while (!signal.aborted) {
      const path = ++calls % 2 === 0 ? "jobs" : "targets";
      const answer = await fetch(`${origin}/v1/${path}`, { headers }).catch(String);
      if (typeof answer === "string") failures.push(answer);
      else if ((await answer.text(), answer.status !== 200)) failures.push(String(answer.status));
      await delay(pauseMs);
    }
  };
  await Promise.all(Array.from({ length: callers }, call));
  return { calls, failures };
}

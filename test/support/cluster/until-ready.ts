import * as http from "node:http";
import * as https from "node:https";
import { setTimeout as delay } from "node:timers/promises";
import type { RunningProgram } from "./start-program.ts";

const readyWithinMs = 60_000;
const pollMs = 50;

/** Resolves when a program answers with 200 at its URL; throws with its last lines where it does not. */
export async function untilReady(url: string, program: RunningProgram): Promise<void> {
  const deadline = performance.now() + readyWithinMs;
  while (!(await isReady(url))) {
    if (program.hasExited() || performance.now() > deadline) {
      throw new Error(`Nothing answers at ${url}:\n${await program.lastLines()}`);
    }
    await delay(pollMs);
  }
}

async function isReady(url: string): Promise<boolean> {
  const get = url.startsWith("https:") ? https.get : http.get;
  return new Promise((resolve) => {
    // The API server's certificate does not exist before it runs.
    const request = get(url, { rejectUnauthorized: false, agent: false }, (answer) => {
      answer.resume();
      resolve(answer.statusCode === 200);
    });
    request.on("error", () => resolve(false));
  });
}

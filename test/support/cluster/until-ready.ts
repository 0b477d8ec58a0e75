import * as http from "node:http";
import * as https from "node:https";
import { until } from "../until.ts";
import type { RunningProgram } from "./start-program.ts";

/** Resolves when the check of a program holds; throws with its last lines where it ends before. */
export async function untilReady(
  what: string,
  program: RunningProgram,
  isReady: () => Promise<boolean>,
): Promise<void> {
  const check = async () => {
    if (await isReady()) return true;
    if (program.hasExited()) throw new Error("It has ended");
    return false;
  };
  try {
    await until(`${what} is ready`, check);
  } catch (error) {
    throw new Error(`${what} does not come up:\n${await program.lastLines()}`, { cause: error });
  }
}

/** Resolves when a program answers with 200 at its URL. */
export function untilAnswering(url: string, program: RunningProgram): Promise<void> {
  return untilReady(`The program at ${url}`, program, () => isAnswering(url));
}

async function isAnswering(url: string): Promise<boolean> {
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

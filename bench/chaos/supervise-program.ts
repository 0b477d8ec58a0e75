import { spawn } from "node:child_process";
import { once } from "node:events";
import { createWriteStream } from "node:fs";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";

export interface ProgramFacts {
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** What it prints once it works. */
  readonly greeting: string;
  /** Takes what all of its processes print. */
  readonly logFile: string;
}

/** A program that is started again whenever it ends, as a cluster does. */
export interface SupervisedProgram {
  /** Kills its process. */
  kill(): void;
  /** Resolves when a process of it works; throws where none does within two minutes. */
  untilWorking(): Promise<void>;
  /** Ends it for good. */
  end(): Promise<void>;
}

const workingWithinMs = 120_000;

export function superviseProgram(facts: ProgramFacts): SupervisedProgram {
  const ending = new AbortController();
  let current = launch(facts);
  const restarting = (async () => {
    for (;;) {
      await current.exited;
      if (ending.signal.aborted) return;
      current = launch(facts);
    }
  })();
  return {
    kill: () => void current.child.kill("SIGKILL"),
    async untilWorking() {
      const deadline = performance.now() + workingWithinMs;
      for (;;) {
        const { greeted, exited } = current;
        const outcome = await Promise.race([greeted, exited, delay(deadline - performance.now())]);
        if (outcome === "greeted") return;
        if (performance.now() >= deadline) {
          throw new Error(`The program does not work, see ${facts.logFile}`);
        }
      }
    },
    async end() {
      ending.abort();
      current.child.kill("SIGTERM");
      await restarting;
    },
  };
}

function launch({ args, env, greeting, logFile }: ProgramFacts) {
  const child = spawn(process.execPath, args, { env, stdio: ["ignore", "pipe", "pipe"] });
  const log = createWriteStream(logFile, { flags: "a" });
  const { promise: greeted, resolve } = Promise.withResolvers<"greeted">();
  for (const stream of [child.stdout, child.stderr]) {
    createInterface(stream).on("line", (line) => {
      log.write(`${line}\n`);
      if (line.includes(greeting)) resolve("greeted");
    });
  }
  const exited = once(child, "close").then(() => {
    log.end();
    return "exited" as const;
  });
  return { child, greeted, exited };
}

import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { inheritedEnvironment } from "../../support/inherited-environment.ts";

/** What runs in a pod's container. */
export interface PodProgram {
  readonly kill: (signal: "SIGTERM" | "SIGKILL") => void;
  /** Resolves with its exit code. */
  readonly closed: Promise<number>;
}

interface ProgramPlace {
  readonly environment: Readonly<Record<string, string>>;
  /** Its working directory. */
  readonly folder: string;
  readonly print: (line: string) => void;
}

export type StartProgram = (place: ProgramPlace) => PodProgram;

export const killedExitCode = 137;
const worker = join(import.meta.dirname, "../../../src/worker/main.ts");

/** A worker as a process of this machine. */
export function spawnWorker({ environment, folder, print }: ProgramPlace): PodProgram {
  const child = spawn(process.execPath, [worker], {
    cwd: folder,
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...inheritedEnvironment(), ...environment },
  });
  for (const stream of [child.stdout, child.stderr]) createInterface(stream).on("line", print);
  return {
    kill: (signal) => void child.kill(signal),
    closed: once(child, "close").then(() => child.exitCode ?? killedExitCode),
  };
}

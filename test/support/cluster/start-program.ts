import { spawn, type ChildProcess, type SpawnOptions } from "node:child_process";
import { once } from "node:events";
import { openSync, closeSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { basename } from "node:path";

export interface RunningProgram {
  readonly pid: number;
  readonly hasExited: () => boolean;
  /** Resolves when it is gone. */
  readonly untilExit: () => Promise<void>;
  /** Kills it and resolves when it is gone. What the tests start keeps nothing that a gentle end would save. */
  readonly kill: () => Promise<void>;
  /** The last lines it printed, to say why it does not come up. */
  readonly lastLines: () => Promise<string>;
}

const tailCharacters = 3_000;

const dieWithParent = ["setpriv", "--pdeathsig", "KILL", "--"];
const running = new Set<ChildProcess>();
process.once("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});

/** Starts a program that ends with this process, however that ends, and prints into a file. */
export async function startProgram(
  command: string,
  args: readonly string[],
  logFile: string,
): Promise<RunningProgram> {
  const log = openSync(logFile, "a");
  // A group of its own: Ctrl-C goes only to this process, which then stops things in order.
  const options: SpawnOptions = { detached: true, stdio: ["ignore", log, log] };
  const words = [...(process.platform === "linux" ? dieWithParent : []), command, ...args];
  const child = spawn(words[0] ?? command, words.slice(1), options);
  closeSync(log);
  const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  await once(child, "spawn");
  if (child.pid === undefined) throw new Error(`Cannot start ${basename(command)}`);
  running.add(child);
  void exited.then(() => running.delete(child));
  // Nobody is kept waiting for the end of a test file by what runs on; at its end it is killed.
  child.unref();
  const untilExit = () => {
    child.ref();
    return exited;
  };
  return {
    pid: child.pid,
    hasExited: () => child.exitCode !== null || child.signalCode !== null,
    untilExit,
    async kill() {
      child.kill("SIGKILL");
      await untilExit();
    },
    async lastLines() {
      return (await readFile(logFile, "utf8")).slice(-tailCharacters);
    },
  };
}

import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { createWriteStream } from "node:fs";
import { mkdir, readFile } from "node:fs/promises";
import path from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const serviceMain = fileURLToPath(new URL("../service/main.ts", import.meta.url));
const stopLimitMs = 5_000;

export interface ServiceProcess {
  /** Ends in `/v1`. */
  readonly baseUrl: string;
  readonly token: string;
  /** Resolves when the process is gone. */
  stop(): Promise<void>;
}

/** Starts the service on a free port, with what it keeps and its log in `directory`, and makes a token for it. */
export async function startServiceProcess(
  directory: string,
  environment: NodeJS.ProcessEnv,
): Promise<ServiceProcess> {
  await mkdir(directory, { recursive: true });
  const env = { ...environment, MOS_DATA_DIR: directory, MOS_HOST: "127.0.0.1", MOS_PORT: "0" };
  const logFile = path.join(directory, "service.log");
  // In a process group of its own Ctrl-C does not reach it, so that the batch can be cancelled first.
  const child = spawn(process.execPath, [serviceMain], {
    env,
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
  });
  child.stderr.pipe(createWriteStream(logFile));
  try {
    const baseUrl = await readListeningUrl(child, logFile);
    const scopes = "jobs:read,jobs:write,models:write";
    const args = [
      serviceMain,
      "token",
      "create",
      "--name",
      "demo",
      "--scopes",
      scopes,
      "--expires-days",
      "1",
    ];
    const { stdout } = await promisify(execFile)(process.execPath, args, { env });
    return { baseUrl, token: stdout.trim(), stop: async () => stopChild(child) };
  } catch (error) {
    await stopChild(child);
    throw error;
  }
}

async function readListeningUrl(
  child: ChildProcess & { readonly stdout: NodeJS.ReadableStream },
  logFile: string,
) {
  const lines = createInterface({ input: child.stdout });
  for await (const line of lines) {
    const url = /^Listening on (\S+)$/.exec(line)?.[1];
    if (url === undefined) continue;
    child.stdout.resume();
    return url;
  }
  throw new Error(`The service did not start:\n${await readFile(logFile, "utf8")}`);
}

async function stopChild(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, "exit");
  const late = setTimeout(() => child.kill("SIGKILL"), stopLimitMs);
  child.kill("SIGTERM");
  await exited;
  clearTimeout(late);
}

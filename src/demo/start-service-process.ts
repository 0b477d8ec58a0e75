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

interface ServiceProcess {
  /** Ends in `/v1`. */
  readonly baseUrl: string;
  readonly token: string;
  /** Resolves when the process has ended. */
  stop(): Promise<void>;
}

/**
 * Starts the service on a free port and creates a token for it. `directory` contains the service's
 * data and its log.
 */
export async function startServiceProcess(
  directory: string,
  environment: NodeJS.ProcessEnv,
): Promise<ServiceProcess> {
  await mkdir(directory, { recursive: true });
  const env = { ...environment, MOS_DATA_DIR: directory, MOS_HOST: "127.0.0.1", MOS_PORT: "0" };
  const logFile = path.join(directory, "service.log");
  // In its own process group it does not receive Ctrl-C: the batch can be cancelled first.
  const child = spawn(process.execPath, [serviceMain], {
    env,
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
  });
  child.stderr.pipe(createWriteStream(logFile));
  try {
    const baseUrl = await readListeningUrl(child, logFile);
    return { baseUrl, token: await createDemoToken(env), stop: async () => stopChild(child) };
  } catch (error) {
    await stopChild(child);
    throw error;
  }
}

async function createDemoToken(env: NodeJS.ProcessEnv): Promise<string> {
  const scopes = "jobs:read,jobs:write,models:write";
  const options = ["--name", "demo", "--scopes", scopes, "--expires-days", "1"];
  const args = [serviceMain, "token", "create", ...options];
  const { stdout } = await promisify(execFile)(process.execPath, args, { env });
  return stdout.trim();
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

import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import type { TestContext } from "node:test";
import { type Client, createClient } from "../../src/client/create-client.ts";

import { routes } from "../../src/contract/routes/routes.ts";
import { briefTargets } from "./brief-targets.ts";
import { testDatabase } from "./test-database.ts";
import { inheritedEnvironment } from "./inherited-environment.ts";

const main = join(import.meta.dirname, "../../src/service/main.ts");

export interface RunningService {
  /** Ends in `/v1`. */
  readonly baseUrl: string;
  /** Token with every scope. */
  readonly token: string;
  /** Opens the dashboard signed in; empty where it was not built, and where somebody is. */
  readonly signInLink: string;
  readonly client: Client;
  readonly process: ChildProcess;
  readonly directory: string;
}

interface StartOptions {
  /** Data folder and token of an earlier run. */
  readonly from?: Pick<RunningService, "directory" | "token">;
  /** Data folder of a first run; by default a new one. */
  readonly directory?: string;
  readonly environment?: Readonly<Record<string, string>>;
}

/** Starts the real service on a free port with its own data folder, until the test has ended. */
export async function startRunningService(
  t: Pick<TestContext, "after">,
  { from, directory: wanted, environment }: StartOptions = {},
): Promise<RunningService> {
  const directory = from?.directory ?? wanted ?? (await mkdtemp(join(tmpdir(), "service-")));
  const own = {
    MOS_DATA_DIR: directory,
    MOS_PORT: "0",
    MOS_TARGETS_FILE: await writeBriefTargets(t),
    ...(await serverEnvironment(from)),
  };
  const child = spawn(process.execPath, [main], {
    env: { ...inheritedEnvironment(), ...own, ...environment },
    stdio: ["ignore", "pipe", "inherit"],
  });
  t.after(async () => {
    if (child.exitCode === null && child.signalCode === null) {
      child.kill("SIGTERM");
      await once(child, "exit");
    }
    // Another service may still work on the same folder, until it is stopped after this one.
    await rm(directory, { recursive: true, force: true, maxRetries: 20 });
  });
  const { baseUrl, firstToken, signInLink } = await readGreeting(child.stdout, from !== undefined);
  const token = from?.token ?? firstToken;
  const client = createClient({ routes, baseUrl, token });
  return { baseUrl, token, signInLink, client, process: child, directory };
}

async function writeBriefTargets(t: Pick<TestContext, "after">): Promise<string> {
  const file = join(tmpdir(), `targets-${randomUUID()}.json`);
  t.after(() => rm(file));
  await writeFile(file, JSON.stringify({ targets: briefTargets }));
  return file;
}

/** Names an empty database where tests use a server. */
async function serverEnvironment(from: StartOptions["from"]): Promise<Record<string, string>> {
  const database = from === undefined ? await testDatabase() : ":memory:";
  return database === ":memory:" ? {} : { MOS_DATABASE_URL: database };
}

/** Parses what the service prints when it is ready; a token only at the data folder's first start. */
async function readGreeting(
  output: Readable,
  isRestart: boolean,
): Promise<{ baseUrl: string; firstToken: string; signInLink: string }> {
  let [baseUrl, signInLink] = ["", ""];
  for await (const line of createInterface({ input: output })) {
    baseUrl = /^Listening on (.*)$/.exec(line)?.[1] ?? baseUrl;
    signInLink = /(http\S+\/sign-in#\S+)$/.exec(line)?.[1] ?? signInLink;
    const file = /to be deleted: (.*)$/.exec(line)?.[1];
    const firstToken = file === undefined ? "" : (await readFile(file, "utf8")).trim();
    if (baseUrl !== "" && (isRestart || firstToken !== ""))
      return { baseUrl, firstToken, signInLink };
  }
  throw new Error("The service did not start");
}

import { appendFile, chown, glob, mkdtemp, rm, statfs } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { Client } from "pg";
import { findFreePort } from "./find-free-port.ts";
import { findCommand } from "./cluster/programs.ts";
import { isRoot } from "./cluster/requirements.ts";
import { type RunningProgram, startProgram } from "./cluster/start-program.ts";
import { untilReady } from "./cluster/until-ready.ts";

const run = promisify(execFile);
/** Databases of tests are 8 MB each, and the last of each file is kept to the end. */
const leastMemoryBytes = 4 * 1024 ** 3;
/** PostgreSQL refuses to run as root. */
const nobody = 65_534;
const asNobody = [`--reuid=${nobody}`, `--regid=${nobody}`, "--clear-groups", "--"];

export interface PostgresServer {
  /** Of the database `postgres`, as the superuser. */
  readonly url: string;
  /** Kills the server as a crash does. */
  readonly kill: () => Promise<void>;
  /** Starts it again. */
  readonly restart: () => Promise<void>;
}

/** A real PostgreSQL server with a data folder of its own, until the end of the test. */
export async function startPostgres(
  t: Pick<TestContext, "after">,
  address = "127.0.0.1",
): Promise<PostgresServer> {
  const home = await mkdtemp(join(await findDataFolder(), "postgres-"));
  if (isRoot()) await chown(home, nobody, nobody);
  const data = join(home, "data");
  const initialize = ["-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync"];
  const [command, ...args] = await commandLine("initdb", [...initialize, "--no-locale"]);
  await run(command, args);
  await appendFile(join(data, "pg_hba.conf"), "host all all all trust\n");
  const port = await findFreePort(address);
  const url = `postgres://postgres@${address}:${port}/postgres`;
  // A server that is killed loses nothing without flushes: its machine goes on.
  const settings = [`listen_addresses=${address}`, "max_connections=200", "fsync=off"];
  // By default it is busy with old databases of tests, and its log grows to a gigabyte.
  settings.push("autovacuum=off", "max_wal_size=128MB");
  const start = async (): Promise<RunningProgram> => {
    const options = ["-D", data, "-p", String(port), "-k", home];
    const words = [...options, ...settings.flatMap((setting) => ["-c", setting])];
    const [program, ...rest] = await commandLine("postgres", words);
    const started = await startProgram(program, rest, join(home, "log"));
    await untilReady("PostgreSQL", started, () => isReady(url));
    return started;
  };
  let server = await start();
  t.after(async () => {
    await server.kill();
    await rm(home, { recursive: true, force: true, maxRetries: 20 });
  });
  return {
    url,
    kill: () => server.kill(),
    async restart() {
      server = await start();
    },
  };
}

/** In memory, where there is room: a database is some 300 files, which a disk takes long for. */
async function findDataFolder(): Promise<string> {
  const memory = "/dev/shm";
  const { bavail, bsize } = await statfs(memory).catch(() => ({ bavail: 0, bsize: 0 }));
  return bavail * bsize > leastMemoryBytes ? memory : tmpdir();
}

async function commandLine(
  name: "initdb" | "postgres",
  args: readonly string[],
): Promise<[string, ...string[]]> {
  const program = await findProgram(name);
  return isRoot() ? ["setpriv", ...asNobody, program, ...args] : [program, ...args];
}

/** Debian keeps the server's programs of each version in a folder of their own. */
async function findProgram(name: string): Promise<string> {
  const found = await findCommand(name);
  if (found !== undefined) return found;
  const installed = await Array.fromAsync(glob(`/usr/lib/postgresql/*/bin/${name}`));
  const newest = installed.toSorted().at(-1);
  if (newest === undefined) throw new Error(`There is no "${name}"`);
  return newest;
}

async function isReady(url: string): Promise<boolean> {
  const client = new Client({ connectionString: url });
  client.on("error", () => {});
  try {
    await client.connect();
    return true;
  } catch {
    return false;
  } finally {
    await client.end().catch(() => {});
  }
}

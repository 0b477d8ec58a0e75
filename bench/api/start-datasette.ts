import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { promisify } from "node:util";
import { findFreePort } from "../../test/support/find-free-port.ts";
import { installOnce } from "../../test/support/prepare-python.ts";
import { benchCache } from "../engine/bench-cache.ts";

const exec = promisify(execFile);
const datasette = "datasette==0.65.1";
const pollMs = 200;

interface Peer extends AsyncDisposable {
  readonly origin: string;
}

/** Datasette, which serves tables of SQLite files as JSON, with a database of ours. */
export async function startDatasette(database: string): Promise<Peer> {
  const environment = join(benchCache, datasette.replace("==", "-"));
  await installOnce(environment, async () => {
    await exec("python3", ["-m", "venv", environment]);
    await exec(join(environment, "bin", "pip"), ["install", "--quiet", datasette]);
  });
  const port = await findFreePort();
  const server = spawn(
    join(environment, "bin", "datasette"),
    ["serve", database, "--port", String(port), "--setting", "max_returned_rows", "200"],
    { stdio: ["ignore", "ignore", "ignore"] },
  );
  const origin = `http://127.0.0.1:${port}`;
  while (!(await fetch(`${origin}/-/versions.json`).catch(() => undefined))?.ok) {
    if (server.exitCode !== null) throw new Error("Datasette did not start");
    await new Promise((resolve) => setTimeout(resolve, pollMs));
  }
  return {
    origin,
    async [Symbol.asyncDispose]() {
      server.kill();
      await once(server, "exit");
    },
  };
}

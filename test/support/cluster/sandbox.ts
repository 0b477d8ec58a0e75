import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { findCommand, programPath } from "./programs.ts";
import { startProgram, type RunningProgram } from "./start-program.ts";
import { until } from "../until.ts";

const exec = promisify(execFile);
const maxSandboxes = 64;

/** Network, process and mount namespaces of their own. All that runs or is mounted inside is gone when they end. */
export interface Sandbox {
  /** Of this machine, as seen from inside. */
  readonly hostAddress: string;
  /** Of the sandbox, as seen from this machine. */
  readonly nodeAddress: string;
  /** Runs a command inside, to its end. */
  readonly run: (command: string, ...args: readonly string[]) => Promise<string>;
  /** Starts a program inside, which lasts as long as the sandbox. */
  readonly start: (
    command: string,
    args: readonly string[],
    logFile: string,
  ) => Promise<RunningProgram>;
  readonly stop: () => Promise<void>;
}

/** Needs Linux and root. Inside there is no way out but to this machine, and /run and /var/log are empty. */
export async function startSandbox(folder: string): Promise<Sandbox> {
  const namespaces = ["--mount", "--net", "--pid"];
  const unshare = await startProgram(
    await resolveCommand("unshare"),
    [...namespaces, "--mount-proc", "--fork", "--kill-child", await programPath("pause")],
    join(folder, "sandbox.log"),
  );
  try {
    const first = await findFirstProcess(unshare);
    const enter = ["--target", String(first), ...namespaces, "--"];
    const run = async (name: string, ...args: readonly string[]) =>
      (await exec("nsenter", [...enter, await resolveCommand(name), ...args])).stdout;
    const { link, ...network } = await joinNetworks(first);
    await run("ip", "link", "set", "lo", "up");
    await run("ip", "address", "add", `${network.nodeAddress}/30`, "dev", "node0");
    await run("ip", "link", "set", "node0", "up");
    for (const path of ["/run", "/var/log"]) await run("mount", "-t", "tmpfs", "tmpfs", path);
    return {
      ...network,
      run,
      start: async (name, args, logFile) =>
        startProgram(
          await resolveCommand("nsenter"),
          [...enter, await resolveCommand(name), ...args],
          logFile,
        ),
      async stop() {
        // Its end takes all others along; once unshare has seen it, none is left but the network,
        // which the kernel takes apart later.
        process.kill(first, "SIGKILL");
        await unshare.untilExit();
        await until("the network link is gone", () => networkInterfaces()[link] === undefined);
      },
    };
  } catch (error) {
    await unshare.kill();
    throw error;
  }
}

/** Joins this machine and the sandbox by the first pair of addresses that is free. The link goes with the sandbox. */
async function joinNetworks(
  first: number,
): Promise<Pick<Sandbox, "hostAddress" | "nodeAddress"> & { readonly link: string }> {
  const ip = await resolveCommand("ip");
  for (let index = 0; index < maxSandboxes; index++) {
    const link = `mos-test${index}`;
    const added = exec(ip, [
      "link",
      "add",
      link,
      "type",
      "veth",
      "peer",
      "name",
      "node0",
      "netns",
      String(first),
    ]);
    const isFree = await added.then(
      () => true,
      (error: unknown) => {
        if (String(error).includes("File exists")) return false;
        throw new Error(`Cannot add the network link "${link}"`, { cause: error });
      },
    );
    if (!isFree) continue;
    const [hostAddress, nodeAddress] = [`10.250.${index}.1`, `10.250.${index}.2`];
    await exec(ip, ["address", "add", `${hostAddress}/30`, "dev", link]);
    await exec(ip, ["link", "set", link, "up"]);
    return { link, hostAddress, nodeAddress };
  }
  throw new Error(`All ${maxSandboxes} sandboxes of this machine are in use`);
}

/** The process that is number one inside, by its number outside. */
async function findFirstProcess(unshare: RunningProgram): Promise<number> {
  return until("the namespaces are made", async () => {
    const child = Number(
      await readFile(`/proc/${unshare.pid}/task/${unshare.pid}/children`, "utf8").catch(() => ""),
    );
    // Until then it is still at the mounts.
    if (child > 0 && (await readFile(`/proc/${child}/comm`, "utf8")) === "pause\n") return child;
    if (!unshare.hasExited()) return undefined;
    throw new Error(`Cannot make namespaces:\n${await unshare.lastLines()}`);
  });
}

async function resolveCommand(name: string): Promise<string> {
  const path = await findCommand(name);
  if (path === undefined) throw new Error(`Cannot find the command "${name}"`);
  return path;
}

import { execFile } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";

const run = promisify(execFile);
const checkEveryMs = 20;

/**
 * Start time of a process, unique among processes with its pid; undefined where it does not run.
 */
export async function readStartMark(pid: number): Promise<string | undefined> {
  if (process.platform !== "linux") {
    const listed = await run("ps", ["-o", "lstart=", "-p", String(pid)]).catch(() => ({
      stdout: "",
    }));
    return listed.stdout.trim() || undefined;
  }
  const stat = await readProcessStat(String(pid));
  if (stat === undefined || stat.state === "Z") return undefined;
  const bootId = await readFile("/proc/sys/kernel/random/boot_id", "utf8");
  return `${bootId.trim()}:${stat.startTicks}`;
}

/**
 * Terminates a process group, kills it after the grace time, and resolves when no process is left.
 */
export async function stopProcessGroup(groupId: number, graceMs: number): Promise<void> {
  const killAt = performance.now() + graceMs;
  signalGroup(groupId, "SIGTERM");
  while (await isGroupAlive(groupId)) {
    if (performance.now() >= killAt) signalGroup(groupId, "SIGKILL");
    await delay(checkEveryMs);
  }
}

async function isGroupAlive(groupId: number): Promise<boolean> {
  if (!signalGroup(groupId, 0)) return false;
  if (process.platform !== "linux") return true;
  // Zombies that are not reaped, as in containers without an init, accept signals but do not run.
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const stats = await Promise.all(pids.map(readProcessStat));
  return stats.some((stat) => stat?.groupId === groupId && stat.state !== "Z");
}

/** False where the group has no process. */
function signalGroup(groupId: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(-groupId, signal);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ESRCH") return false;
    throw error;
  }
}

async function readProcessStat(pid: string) {
  const text = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => undefined);
  if (text === undefined) return undefined;
  // The name, in parentheses, may itself contain spaces and parentheses.
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  return { state: fields[0], groupId: Number(fields[2]), startTicks: fields[19] };
}

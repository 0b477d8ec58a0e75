import { readFile } from "node:fs/promises";
import { totalmem } from "node:os";
import path from "node:path";

interface MemoryFiles {
  /** Files of a control group: its limit, what it uses, and what that consists of. */
  readonly limit: string;
  readonly used: string;
  /** Entries of `memory.stat` for pages of files, which the kernel can take back. */
  readonly fileCache: RegExp;
}

/** Where each version of control groups is mounted, and what its files are called. */
const controllers: readonly (MemoryFiles & { membership: RegExp; mounts: readonly string[] })[] = [
  {
    membership: /^0::(.*)$/m,
    mounts: ["sys/fs/cgroup", "sys/fs/cgroup/unified"],
    limit: "memory.max",
    used: "memory.current",
    fileCache: /^(?:in)?active_file (\d+)$/gm,
  },
  {
    membership: /^\d+:(?:[^:]*,)?memory(?:,[^:]*)?:(.*)$/m,
    mounts: ["sys/fs/cgroup/memory"],
    limit: "memory.limit_in_bytes",
    used: "memory.usage_in_bytes",
    fileCache: /^total_(?:in)?active_file (\d+)$/gm,
  },
];

/**
 * Memory that can be allocated before something is killed for it, bytes: the least of what the
 * machine has available and of what is left in this process's control group and those above it.
 * Systems other than Linux swap, and have all of their memory available.
 * @param root folder that has `proc` and `sys`
 */
export async function readAvailableMemoryBytes(root = "/"): Promise<number> {
  const meminfo = await readTextOrEmpty(path.join(root, "proc/meminfo"));
  const [, kilobytes] = /^MemAvailable:\s*(\d+) kB$/m.exec(meminfo) ?? [];
  const machine = kilobytes === undefined ? totalmem() : Number(kilobytes) * 1024;
  const groups = await readTextOrEmpty(path.join(root, "proc/self/cgroup"));
  const free = [machine];
  for (const { membership, mounts, ...files } of controllers) {
    const [, group] = membership.exec(groups) ?? [];
    if (group === undefined) continue;
    for (const mount of mounts) {
      for (const folder of listGroupsAbove(group)) {
        free.push(await readFreeBytes(path.join(root, mount, folder), files));
      }
    }
  }
  return Math.max(0, Math.min(...free));
}

/**
 * The group and all groups above it. In a container the group's own path may not be there, and the
 * container's group is the root.
 */
function listGroupsAbove(group: string): string[] {
  const parts = group.split("/").filter((part) => part !== "" && part !== "..");
  return [...parts.keys(), parts.length].map((count) => parts.slice(0, count).join("/"));
}

/** What a control group may still use; infinite where it has no limit. */
async function readFreeBytes(
  folder: string,
  { limit, used, fileCache }: MemoryFiles,
): Promise<number> {
  const read = async (name: string) => readTextOrEmpty(path.join(folder, name));
  const most = Number.parseInt(await read(limit), 10);
  const usage = Number.parseInt(await read(used), 10);
  if (Number.isNaN(most) || Number.isNaN(usage)) return Infinity;
  const cached = [...(await read("memory.stat")).matchAll(fileCache)];
  return most - usage + cached.reduce((sum, [, bytes]) => sum + Number(bytes), 0);
}

/** The empty string stands for a file that cannot be read. */
async function readTextOrEmpty(file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch {
    return "";
  }
}

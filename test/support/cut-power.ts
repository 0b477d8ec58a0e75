import { execFileSync, spawnSync } from "node:child_process";
import {
  constants,
  copyFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";

const diskBytes = 384 * 1024 * 1024;

/** A disk whose content can be looked at as a power failure would leave it. */
export interface CuttableDisk extends Disposable {
  /** Where it is mounted. */
  readonly folder: string;
  /** What a power failure at this moment would leave, while the process stands still. */
  cut(pid: number): Promise<DiskAfterCut>;
}

interface DiskAfterCut {
  /** Mounts the disk as after the power is back, reads it, and forgets it. */
  read<T>(read: (folder: string) => Promise<T>): Promise<T>;
}

/**
 * A file system in a file: what the kernel has in memory only is missing in the file, and thus in
 * its copy. Undefined where this process may not mount one.
 */
export function makeCuttableDisk(parent: string): CuttableDisk | undefined {
  const [image, folder] = [join(parent, "disk.img"), join(parent, "disk")];
  mkdirSync(folder);
  writeFileSync(image, "");
  truncateSync(image, diskBytes);
  if (spawnSync("mkfs.ext4", ["-q", "-F", image]).status !== 0) return undefined;
  // Without a commit of the file system's own, only what a process flushed is in the file.
  if (spawnSync("mount", ["-o", "loop,commit=300", image, folder]).status !== 0) return undefined;
  let cuts = 0;
  return {
    folder,
    async cut(pid) {
      const copy = join(parent, `cut-${++cuts}.img`);
      process.kill(pid, "SIGSTOP");
      try {
        await untilStopped(pid);
        copyFileSync(image, copy, constants.COPYFILE_FICLONE);
      } finally {
        process.kill(pid, "SIGCONT");
      }
      return { read: (read) => readImage(copy, read) };
    },
    [Symbol.dispose]() {
      execFileSync("umount", [folder]);
      rmSync(image);
    },
  };
}

async function readImage<T>(image: string, read: (folder: string) => Promise<T>): Promise<T> {
  const folder = `${image}.mounted`;
  mkdirSync(folder);
  execFileSync("mount", ["-o", "loop", image, folder]);
  try {
    return await read(folder);
  } finally {
    execFileSync("umount", [folder]);
    rmSync(image);
  }
}

/** Until no thread of the process runs, not even in the kernel. */
async function untilStopped(pid: number): Promise<void> {
  const tasks = `/proc/${pid}/task`;
  const isStopped = (id: string) => / T /.test(readFileSync(join(tasks, id, "stat"), "utf8"));
  while (!readdirSync(tasks).every(isStopped)) await delay(1);
}

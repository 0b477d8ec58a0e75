import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { test } from "node:test";
import { readAvailableMemoryBytes } from "../../../src/engine/accuracy/available-memory.ts";

const meminfo = "MemTotal:  9000 kB\nMemFree:  100 kB\nMemAvailable:  8000 kB\n";
const machine = 8000 * 1024;
const statV2 = "anon 5\ninactive_file 300\nactive_file 20\nfile 1000\n";
const statV1 = "cache 1\ninactive_file 9\ntotal_inactive_file 300\ntotal_active_file 20\n";
const unlimitedV1 = "9223372036854771712\n";

const layouts: [what: string, files: Record<string, string>, available: number][] = [
  ["the machine's if there are no control groups", {}, machine],
  [
    "the machine's where a group has no limit",
    { "proc/self/cgroup": "0::/job\n", "sys/fs/cgroup/job/memory.max": "max\n" },
    machine,
  ],
  [
    "what a group of version 2 has left, cached files included",
    {
      "proc/self/cgroup": "0::/pods/job\n",
      "sys/fs/cgroup/pods/job/memory.max": "5000\n",
      "sys/fs/cgroup/pods/job/memory.current": "2000\n",
      "sys/fs/cgroup/pods/job/memory.stat": statV2,
    },
    3320,
  ],
  [
    "what the group above has left",
    {
      "proc/self/cgroup": "0::/pods/job\n",
      "sys/fs/cgroup/pods/job/memory.max": "5000\n",
      "sys/fs/cgroup/pods/job/memory.current": "2000\n",
      "sys/fs/cgroup/pods/memory.max": "7000\n",
      "sys/fs/cgroup/pods/memory.current": "6500\n",
    },
    500,
  ],
  [
    "what the container has left, whose own group is the root",
    {
      "proc/self/cgroup": "0::/../../kubepods/pod\n",
      "sys/fs/cgroup/memory.max": "4000\n",
      "sys/fs/cgroup/memory.current": "1000\n",
    },
    3000,
  ],
  [
    "what a group of version 1 has left beside version 2",
    {
      "proc/self/cgroup": "5:cpu,memory:/pods/job\n1:name=systemd:/\n0::/\n",
      "sys/fs/cgroup/memory/pods/job/memory.limit_in_bytes": "6000\n",
      "sys/fs/cgroup/memory/pods/job/memory.usage_in_bytes": "2000\n",
      "sys/fs/cgroup/memory/pods/job/memory.stat": statV1,
      "sys/fs/cgroup/memory/memory.limit_in_bytes": unlimitedV1,
      "sys/fs/cgroup/memory/memory.usage_in_bytes": "100000000\n",
    },
    4320,
  ],
  [
    "nothing where a group is over its limit",
    {
      "proc/self/cgroup": "0::/job\n",
      "sys/fs/cgroup/job/memory.max": "1000\n",
      "sys/fs/cgroup/job/memory.current": "1100\n",
    },
    0,
  ],
];
for (const [what, files, available] of layouts) {
  test(`readAvailableMemoryBytes() gives ${what}`, async (t) => {
    const root = await mkdtemp(path.join(tmpdir(), "memory-"));
    t.after(async () => rm(root, { recursive: true }));
    for (const [name, text] of Object.entries({ "proc/meminfo": meminfo, ...files })) {
      await mkdir(path.dirname(path.join(root, name)), { recursive: true });
      await writeFile(path.join(root, name), text);
    }
    assert.equal(await readAvailableMemoryBytes(root), available);
  });
}

test("readAvailableMemoryBytes() gives this machine's", async () => {
  assert((await readAvailableMemoryBytes()) > 2 ** 20);
});

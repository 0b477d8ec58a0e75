import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { glob, readdir, readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { networkInterfaces } from "node:os";
import { basename } from "node:path";
import { test } from "node:test";
import { nodeMissing } from "./cluster-missing.ts";
import { imageNames } from "./image-builds.ts";
import { startCluster } from "./start-cluster.ts";
import { until } from "../until.ts";

test(
  "a pod runs as an ordinary user, has a GPU's place, finds services by name and reaches this machine",
  {
    skip: nodeMissing,
  },
  async () => {
    await using cluster = await startCluster();
    await using server = createServer((request, response) => request.pipe(response));
    await once(server.listen(0, cluster.hostAddress), "listening");
    const address = server.address();
    assert.ok(address !== null && typeof address === "object");

    const script = `
    const { address } = await (await import("node:dns/promises")).lookup("kubernetes.default");
    const reply = await fetch("http://${cluster.hostAddress}:${address.port}", { method: "POST", body: "hello" });
    console.log(process.getuid(), address, await reply.text());
  `;
    await cluster.kubectl(["create", "-f", "-"], JSON.stringify(scriptJob("work", script)));
    await cluster.kubectl(["wait", "job/work", "--for=condition=Complete", "--timeout=240s"]);
    assert.equal(await cluster.kubectl(["logs", "job/work"]), "10001 10.0.0.1 hello\n");

    await cluster.stop();
    assert.deepEqual(await leftovers(cluster), []);
  },
);

test(
  "a cluster whose process is killed leaves no process and no network",
  { skip: nodeMissing },
  async () => {
    const program = `
    const { startCluster } = await import(${JSON.stringify(new URL("start-cluster.ts", import.meta.url).href)});
    const cluster = await startCluster();
    const pod = ["run", "sleeper", "--image=${imageNames.node}", "--image-pull-policy=Never", "--", "sleep", "1000"];
    await cluster.kubectl(pod);
    await cluster.kubectl(["wait", "--for=condition=Ready", "pod/sleeper", "--timeout=240s"]);
    process.send({ folder: cluster.folder, hostAddress: cluster.hostAddress });
    setInterval(() => {}, 60_000);
  `;
    const child = spawn(process.execPath, ["--input-type=module", "--eval", program], {
      stdio: ["ignore", "inherit", "inherit", "ipc"],
    });
    const [cluster] = (await once(child, "message")) as [{ folder: string; hostAddress: string }];
    assert.notDeepEqual(await leftovers(cluster), []);
    child.kill("SIGKILL");
    // Its folder and empty cgroups stay until the next start.
    const isLive = (what: string) => !what.startsWith("folder") && !what.startsWith("cgroup");
    await until("nothing of it is live", async () => !(await leftovers(cluster)).some(isLive));

    await using next = await startCluster();
    await next.stop();
    assert.deepEqual(await leftovers(cluster), []);
  },
);

function scriptJob(name: string, script: string): object {
  const container = {
    name: "script",
    image: imageNames.node,
    imagePullPolicy: "Never",
    command: ["node", "--input-type=module", "--eval", script],
    resources: { limits: { "nvidia.com/gpu": 1, memory: "256Mi" } },
    securityContext: {
      runAsUser: 10001,
      runAsNonRoot: true,
      readOnlyRootFilesystem: true,
      allowPrivilegeEscalation: false,
      capabilities: { drop: ["ALL"] },
      seccompProfile: { type: "RuntimeDefault" },
    },
  };
  const template = { spec: { restartPolicy: "Never", containers: [container] } };
  return {
    apiVersion: "batch/v1",
    kind: "Job",
    metadata: { name },
    spec: { backoffLimit: 0, template },
  };
}

/** What of a cluster can still be found on this machine. */
async function leftovers({
  folder,
  hostAddress,
}: {
  folder: string;
  hostAddress: string;
}): Promise<string[]> {
  const found: string[] = [];
  if (existsSync(folder)) found.push(`folder ${folder}`);
  for await (const cgroup of glob(`/sys/fs/cgroup/{,*/}${basename(folder)}`))
    found.push(`cgroup ${cgroup}`);
  const addresses = Object.values(networkInterfaces()).flatMap((network) => network ?? []);
  if (addresses.some(({ address }) => address === hostAddress))
    found.push(`address ${hostAddress}`);
  for (const pid of (await readdir("/proc")).filter((name) => /^\d+$/.test(name))) {
    const command = await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "");
    if (command.includes(folder)) found.push(`process ${command.replaceAll("\0", " ")}`);
  }
  return found;
}

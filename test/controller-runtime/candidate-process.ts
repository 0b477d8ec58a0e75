import { writeSync } from "node:fs";
import { createInterface } from "node:readline";
import { z } from "zod";
import { acquireLeadership } from "../../src/controller-runtime/leadership.ts";
import { systemClock } from "../../src/controller-runtime/clock.ts";
import { connectCluster } from "../../src/kubernetes/connect-cluster.ts";

/** A candidate of its own process, so that it can be killed and can stand still. Prints its state in lines. */
const settings = z.object({
  kubeconfig: z.string(),
  namespace: z.string(),
  name: z.string(),
  identity: z.string(),
  timing: z.object({ leaseMs: z.number(), renewDeadlineMs: z.number(), retryMs: z.number() }),
});

const { kubeconfig, namespace, ...election } = settings.parse(JSON.parse(process.argv[2] ?? ""));
const printLine = (line: string) => writeSync(1, `${line}\n`);
const client = await connectCluster({ kubeconfig }, { namespace });
const log = () => {};
const leadership = await acquireLeadership(
  { ...election, client, clock: systemClock, log },
  new AbortController().signal,
);
leadership.lost.addEventListener("abort", () => printLine("lost"));
printLine("leading");
for await (const line of createInterface({ input: process.stdin })) {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, Number(line));
  printLine(leadership.isLeader() ? "still leader" : "not leader");
}

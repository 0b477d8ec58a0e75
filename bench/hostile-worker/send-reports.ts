import { createHash } from "node:crypto";
import { maxArtifacts } from "../../src/contract/jobs/artifact.ts";
import { workerEventsAnswer } from "../../src/contract/worker-protocol/messages.ts";

/**
 * Sends reports with a worker's secret, as fast as they are answered and whatever the answers are,
 * until the process that started this one says stop. Arguments: origin, job and secret.
 */
const [, , origin = "", jobId = "", secret = ""] = process.argv;
const connections = 8;
const forged = "a\n2026 forged\u001b[2J\u202e\u0000\u200b\u{e0041}";
const at = "2026-01-01T00:00:00Z";

let [sent, isOver, seq] = [0, false, 1];
process.once("message", () => {
  isOver = true;
});

async function ask(method: string, path: string, body?: string): Promise<string> {
  sent++;
  const headers = { authorization: `Bearer ${secret}`, "content-type": "application/json" };
  const url = `${origin}/worker/v1/jobs/${jobId}${path}`;
  const answer = await fetch(url, { method, headers, ...(body !== undefined && { body }) });
  return answer.text();
}

/** Events in their order, after those that the service has. */
async function report(events: readonly object[]): Promise<void> {
  const numbered = events.map((event, i) => ({ ...event, seq: seq + i, at }));
  const answer = JSON.parse(await ask("POST", "/events", JSON.stringify({ events: numbered })));
  seq = workerEventsAnswer.safeParse(answer).data?.nextSeq ?? seq;
}

const content = "of a hostile worker";
const blob = {
  sha256: createHash("sha256").update(content).digest("hex"),
  bytes: Buffer.byteLength(content),
};

function artifacts(first: number): object[] {
  return Array.from({ length: 500 }, (_, i) => {
    const name = `${(first + i) % maxArtifacts}`.padEnd(200, "x");
    return { type: "artifact", artifact: { name, kind: "weights", ...blob } };
  });
}

const warnings = Array.from({ length: 64 }, () => ({ code: forged, message: forged.repeat(20) }));
const progress = { fraction: 0.5, message: forged };
const line = { type: "log", stream: "stdout", text: forged };
const works: readonly ((round: number) => Promise<unknown>)[] = [
  (round) => report(artifacts(round * 500)),
  () => report([{ type: "telemetry", telemetry: { progress, warnings } }]),
  () => report([line]),
  () => report(Array.from({ length: 1000 }, () => line)),
  () => report([{ ...line, text: forged.repeat(4000) }]),
  () => report([{ ...line, text: "x".repeat(4_000_000) }]),
  () => ask("POST", "/events", "[".repeat(100_000)),
  () => ask("GET", ""),
  (round) =>
    ask("PUT", `/blobs/${createHash("sha256").update(`${round}`).digest("hex")}`, `${round}`),
  () => ask("GET", `/blobs/${blob.sha256}`),
];

await ask("PUT", `/blobs/${blob.sha256}`, content);
await report([{ type: "status", status: "Sharding" }]);
await Promise.all(
  Array.from({ length: connections }, async (_, first) => {
    for (let round = first; !isOver; round++) {
      // The service may refuse a body by closing the connection.
      await works[round % works.length]?.(round).catch(() => {});
    }
  }),
);
process.send?.(sent);
process.disconnect();

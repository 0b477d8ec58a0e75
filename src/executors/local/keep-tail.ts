import type { Readable } from "node:stream";

const maxTailBytes = 64 * 1024;
const maxTailLines = 200;

/** Keeps the end of a process' output. The returned function gives its lines. */
export function keepTail(stream: Readable): () => string[] {
  let tail = Buffer.alloc(0);
  let cut = false;
  stream.on("data", (chunk: Buffer) => {
    tail = Buffer.concat([tail, chunk]);
    if (tail.length <= maxTailBytes) return;
    tail = tail.subarray(tail.length - maxTailBytes);
    cut = true;
  });
  return () => {
    const lines = tail.toString("utf8").split(/\r?\n/);
    if (lines.at(-1) === "") lines.pop();
    const kept = (cut ? lines.slice(1) : lines).slice(-maxTailLines);
    return kept.length < lines.length
      ? ["(earlier output of the worker was dropped)", ...kept]
      : kept;
  };
}

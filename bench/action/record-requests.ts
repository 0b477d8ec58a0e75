import { subscribe } from "node:diagnostics_channel";
import { appendFileSync } from "node:fs";
import { z } from "zod";

// Loaded into a process before its program: records when its requests begin and end.

const message = z.object({ request: z.object({ method: z.string(), path: z.string() }) });
const file = process.env["REQUEST_TIMES_FILE"] ?? "";

for (const [channel, phase] of [
  ["undici:client:sendHeaders", "begin"],
  ["undici:request:headers", "end"],
] as const) {
  subscribe(channel, (published) => {
    const { method, path } = message.parse(published).request;
    const at = performance.timeOrigin + performance.now();
    appendFileSync(file, `${JSON.stringify({ phase, method, path, at })}\n`);
  });
}

import path from "node:path";
import { errorMessage } from "../log/error-message.ts";
import { createDisplay } from "./display.ts";
import { runDemo } from "./run-demo.ts";

/** Exit codes of a process that a signal ended: 128 and the number of the signal. */
const signalExits = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const;

const stop = new AbortController();
let exitCode = 0;
for (const [signal, code] of Object.entries(signalExits)) {
  process.on(signal, () => {
    if (stop.signal.aborted) return;
    exitCode = code;
    stop.abort();
  });
}

const [directory = "data/demo"] = process.argv.slice(2);
const { TERM: terminal } = process.env;
const display = createDisplay(process.stdout, process.stdout.isTTY && terminal !== "dumb");
try {
  const allCompleted = await runDemo({
    directory: path.resolve(directory),
    environment: process.env,
    display,
    signal: stop.signal,
  });
  if (!allCompleted) exitCode ||= 1;
} catch (error) {
  if (!stop.signal.aborted) {
    exitCode = 1;
    process.stderr.write(`${errorMessage(error)}\n`);
  }
}
process.exit(exitCode);

import { compressFile, usage } from "./compress-file.ts";
import { ServiceError } from "../contract/errors.ts";
import { errorMessage } from "../log/error-message.ts";

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

const clearLine = process.stderr.isTTY ? "\r\u001B[K" : "";
let shown = "";
try {
  await compressFile(process.argv.slice(2), {
    signal: stop.signal,
    onProgress: (fraction, message) => {
      const line = `${(100 * fraction).toFixed(0)} % ${message}`;
      if (clearLine !== "" && line !== shown) process.stderr.write(`${clearLine}${line}`);
      shown = line;
    },
    log: (line) => process.stdout.write(`${clearLine}${line}\n`),
  });
} catch (error) {
  if (stop.signal.aborted) {
    process.stderr.write(`${clearLine}Cancelled; nothing is left\n`);
  } else {
    exitCode = 1;
    const code = error instanceof ServiceError ? `${error.code}: ` : "";
    process.stderr.write(`${clearLine}${code}${errorMessage(error)}\n`);
    if (code === "validation_failed: ") process.stderr.write(`${usage}\n`);
  }
}
process.exitCode = exitCode;

import { compressFile, usage } from "./compress-file.ts";
import { ServiceError } from "../contract/errors.ts";
import { abortOnSignals } from "../limits/abort-on-signals.ts";
import { errorMessage } from "../log/error-message.ts";
import { surviveLostOutput } from "../log/survive-lost-output.ts";

const args = process.argv.slice(2);
if (args.includes("--help") || args.includes("-h")) {
  process.stdout.write(`${usage}\n`);
  process.exit();
}
surviveLostOutput(process.stdout, process.stderr);
const stop = abortOnSignals();
const clearLine = process.stderr.isTTY ? "\r\u001B[K" : "";
let shown = "";
try {
  await compressFile(args, {
    signal: stop,
    onProgress: (fraction, message) => {
      const line = `${(100 * fraction).toFixed(0)} % ${message}`;
      if (clearLine !== "" && line !== shown) process.stderr.write(`${clearLine}${line}`);
      shown = line;
    },
    log: (line) => process.stdout.write(`${clearLine}${line}\n`),
  });
} catch (error) {
  if (stop.aborted) {
    process.stderr.write(`${clearLine}Cancelled; nothing is left\n`);
  } else {
    process.exitCode = 1;
    const code = error instanceof ServiceError ? `${error.code}: ` : "";
    process.stderr.write(`${clearLine}${code}${errorMessage(error)}\n`);
    if (code === "validation_failed: ") process.stderr.write(`${usage}\n`);
  }
}

import path from "node:path";
import { parseArgs } from "node:util";
import { abortOnSignals } from "../limits/abort-on-signals.ts";
import { errorMessage } from "../log/error-message.ts";
import { surviveLostOutput } from "../log/survive-lost-output.ts";
import { createDisplay } from "./display.ts";
import { runDemo } from "./run-demo.ts";

const usage = `Usage: npm run demo [-- FOLDER]

Compresses real models for two targets and prints the results.
FOLDER has the data of its service; by default data/demo.
`;

function readCommandLine(): { directory: string; help: boolean } {
  const options = { help: { type: "boolean", short: "h", default: false } } as const;
  try {
    const { values, positionals } = parseArgs({ options, allowPositionals: true });
    const [directory = "data/demo"] = positionals;
    return { directory, ...values };
  } catch (error) {
    process.stderr.write(`${errorMessage(error)}\n${usage}`);
    process.exit(2);
  }
}

const { directory, help } = readCommandLine();
if (help) {
  process.stdout.write(usage);
  process.exit();
}
surviveLostOutput(process.stdout, process.stderr);
const stop = abortOnSignals();
const { TERM: terminal } = process.env;
const display = createDisplay(process.stdout, process.stdout.isTTY && terminal !== "dumb");
try {
  const allCompleted = await runDemo({
    directory: path.resolve(directory),
    environment: process.env,
    display,
    signal: stop,
  });
  if (!allCompleted) process.exitCode ||= 1;
} catch (error) {
  if (!stop.aborted) {
    process.exitCode = 1;
    process.stderr.write(`${errorMessage(error)}\n`);
  }
}
process.exit();

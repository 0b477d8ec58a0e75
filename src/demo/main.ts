import path from "node:path";
import { abortOnSignals } from "../limits/abort-on-signals.ts";
import { errorMessage } from "../log/error-message.ts";
import { createDisplay } from "./display.ts";
import { runDemo } from "./run-demo.ts";

const stop = abortOnSignals();
const [directory = "data/demo"] = process.argv.slice(2);
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

import * as core from "@actions/core";
import { EnvHttpProxyAgent } from "undici";
import { InputError } from "./input-error.ts";
import { runMain } from "./run-main.ts";

const stop = new AbortController();
for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => stop.abort());

const dispatcher = new EnvHttpProxyAgent();
try {
  const conclusion = await runMain({
    environment: process.env,
    output: process.stdout,
    signal: stop.signal,
    dispatcher,
  });
  if (conclusion !== "success") core.setFailed(`The batch ended with ${conclusion}`);
} catch (error) {
  if (error instanceof InputError) {
    for (const { message, place } of error.problems)
      core.error(message, place && { file: place.file, startLine: place.line });
    process.exitCode = 1;
  } else {
    core.setFailed(error instanceof Error ? error.message : String(error));
  }
} finally {
  await dispatcher.close();
}

import * as core from "@actions/core";
import { EnvHttpProxyAgent } from "undici";
import { InputError } from "./input-error.ts";
import { runMain } from "./run-main.ts";
import { runPost } from "./run-post.ts";

const stop = new AbortController();
for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => stop.abort());

const dispatcher = new EnvHttpProxyAgent();
const context = {
  environment: process.env,
  output: process.stdout,
  signal: stop.signal,
  dispatcher,
};
const isPost = core.getState("isPost") !== "";
try {
  if (isPost) {
    await runPost(context);
  } else {
    core.saveState("isPost", "true");
    await runMain(context);
  }
} catch (error) {
  const problems = error instanceof InputError ? error.problems : [{ message: String(error) }];
  // What cannot be cleaned up is no failure of the workflow.
  const reportProblem = isPost ? core.warning : core.setFailed;
  for (const { message } of problems) reportProblem(message);
}
// Waits of requests that nobody needs any more would keep a cancelled step alive.
if (stop.signal.aborted) process.exit(1);
await dispatcher.close();

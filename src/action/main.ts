import * as core from "@actions/core";
import { context } from "@actions/github";
import { EnvHttpProxyAgent } from "undici";
import { InputError } from "./explain-error.ts";
import { runMain } from "./run-main.ts";
import { runPost } from "./run-post.ts";

const stop = new AbortController();
for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => stop.abort());

const dispatcher = new EnvHttpProxyAgent();
const step = {
  environment: process.env,
  context,
  output: process.stdout,
  signal: stop.signal,
  dispatcher,
};
const isPost = core.getState("isPost") !== "";
try {
  if (isPost) {
    await runPost(step);
  } else {
    core.saveState("isPost", "true");
    await runMain(step);
  }
} catch (error) {
  const problems = error instanceof InputError ? error.problems : [{ message: String(error) }];
  // A failed cleanup does not fail the workflow.
  const reportProblem = isPost ? core.warning : core.setFailed;
  for (const { message } of problems) reportProblem(message);
}
// Requests in their pauses before a retry would keep a cancelled step alive.
if (stop.signal.aborted) process.exit(1);
await dispatcher.close();

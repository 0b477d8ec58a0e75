import * as core from "@actions/core";
import { printOutput } from "../../src/action/print-output.ts";
import { retryWhileUnreachable } from "../../src/action/retry-while-unreachable.ts";
import { UnexpectedAnswerError } from "../../src/client/problem-error.ts";

await printOutput("a for cpu", process.stdout, async (print) => {
  await print("::error file=a.ts::Planted");
  await print("A word ##[error]Planted");
  await print("Progress\r::set-env name=PATH::/tmp");
  core.warning("Our own");
  await print("::endgroup::");
});

const page = { status: 503, headers: {}, text: "Busy\n::error file=a.ts::Planted" };
const answers = [new UnexpectedAnswerError("GET /batches", page)];
await retryWhileUnreachable(async () => {
  const error = answers.pop();
  if (error) throw error;
}, new AbortController().signal);

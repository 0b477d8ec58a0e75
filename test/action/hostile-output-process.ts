import * as core from "@actions/core";
import { printOutput } from "../../src/action/print-output.ts";

await printOutput("a for cpu", process.stdout, async (print) => {
  await print("::error file=a.ts::Planted");
  await print("A word ##[error]Planted");
  await print("Progress\r::set-env name=PATH::/tmp");
  core.warning("Our own");
  await print("::endgroup::");
});

import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import path from "node:path";
import test, { type TestContext } from "node:test";
import { prepareRunner } from "./runner.ts";

/** A runner whose steps run a program of these lines. */
async function prepareScriptRunner(t: TestContext, lines: readonly string[]) {
  const { workspace } = await prepareRunner(t);
  const program = path.join(workspace, "step.mjs");
  await writeFile(program, [`import { appendFileSync } from "node:fs";`, ...lines].join("\n"));
  return prepareRunner(t, { program });
}

test("a step is given its inputs, and what it reports is read", async (t) => {
  const runner = await prepareScriptRunner(t, [
    "const { INPUT_MODELS, STATE_BATCH, GITHUB_OUTPUT, GITHUB_STATE, GITHUB_STEP_SUMMARY } = process.env;",
    "appendFileSync(GITHUB_OUTPUT, `models<<mark\\n${INPUT_MODELS}\\nmark\\n`);",
    "appendFileSync(GITHUB_STATE, `BATCH=${STATE_BATCH ?? 'b-1'}\\n`);",
    "appendFileSync(GITHUB_STEP_SUMMARY, '# Done\\n');",
    "console.log('::notice::told');",
    "process.exitCode = 3;",
  ]);
  const { code, outputs, state, summary, commands } = await (
    await runner.start({ models: "a\nb" })
  ).ended;
  assert.deepEqual(
    [code, outputs, state, summary],
    [3, { models: "a\nb" }, { BATCH: "b-1" }, "# Done\n"],
  );
  assert.equal(commands[0]?.message, "told");
  const post = await (await runner.startPost({ BATCH: "b-2" }, {})).ended;
  assert.deepEqual(post.state, { BATCH: "b-2" });
});

test("a step that ends when it is asked to gets one signal", async (t) => {
  const runner = await prepareScriptRunner(t, [
    "process.on('SIGINT', () => process.exit(0));",
    "setInterval(() => {}, 1000);",
    "console.log('ready');",
  ]);
  const step = await runner.start({});
  await step.untilLog(/^ready$/m);
  const { code, signals } = await step.cancel();
  assert.deepEqual([code, signals], [0, ["SIGINT"]]);
});

test("a step that does not end is killed in the end", async (t) => {
  const runner = await prepareScriptRunner(t, [
    "for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => console.log(signal));",
    "setInterval(() => {}, 1000);",
    "console.log('ready');",
  ]);
  const step = await runner.start({});
  await step.untilLog(/^ready$/m);
  const { signal, signals, log } = await step.cancel();
  assert.deepEqual(
    [signal, signals, log],
    ["SIGKILL", ["SIGINT", "SIGTERM", "SIGKILL"], "ready\nSIGINT\nSIGTERM\n"],
  );
});

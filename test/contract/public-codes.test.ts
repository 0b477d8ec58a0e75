import assert from "node:assert/strict";
import { glob, readFile } from "node:fs/promises";
import { join } from "node:path";
import test from "node:test";
import { eventReasonTable } from "../../src/contract/custom-resources/event-reasons.ts";
import { errorTable } from "../../src/contract/errors.ts";
import { batchStatus, jobStatus } from "../../src/contract/jobs/status.ts";
import { statusReasonTable } from "../../src/contract/jobs/status-reasons.ts";
import { warningTable } from "../../src/contract/jobs/warnings.ts";
import { workerExit, workerExitMeanings } from "../../src/contract/worker-protocol/exit-codes.ts";
import { findPublicCodes, type PublicCode } from "./find-public-codes.ts";

const root = join(import.meta.dirname, "../..");
const tables = [statusReasonTable, errorTable, warningTable, eventReasonTable];
const listed: ReadonlySet<string> = new Set([
  ...tables.flatMap((table) => Object.keys(table)),
  ...jobStatus.options,
  ...batchStatus.options,
  // zod's code of an issue that a refinement finds.
  "custom",
]);
/** Its reasons are those of the API server. */
const foreign = "src/kubernetes/";
const tableFiles = /^src\/contract\/(errors|status-reasons|warnings|custom-resources)\.ts$/;

async function readSources(): Promise<readonly (readonly [string, string])[]> {
  const files = await Array.fromAsync(glob("{src,operator}/**/*.ts", { cwd: root }));
  return Promise.all(
    files.map(async (file) => [file, await readFile(join(root, file), "utf8")] as const),
  );
}

function unlisted(codes: readonly PublicCode[]): readonly PublicCode[] {
  return codes.filter(({ code }) => !listed.has(code));
}

const sources = (await readSources()).filter(([file]) => !file.startsWith(foreign));

test("every code that the product gives is in a table of the contract", () => {
  const codes = sources.flatMap(([file, text]) => findPublicCodes(file, text));
  assert.ok(codes.length > 100);
  assert.deepEqual(unlisted(codes), []);
});

for (const planted of [
  'record({ type: "waiting", reason: "made_up", message });',
  'throw new ServiceError("made_up", message);',
  'const error = { code: isOld ? "made_up" : "worker_crashed", message };',
  'const patch = { statusReason: "made_up" as const };',
]) {
  test(`a code without a row is found in ${planted}`, () => {
    const file = "src/records/planted.ts";
    assert.deepEqual(unlisted(findPublicCodes(file, planted)), [{ file, code: "made_up" }]);
  });
}

test("every code of the tables is given by some source", () => {
  const users = sources.filter(([file]) => !tableFiles.test(file));
  const text = users.map(([, content]) => content).join("\n");
  const unused = tables
    .flatMap((table) => Object.keys(table))
    .filter((code) => !new RegExp(`\\b${code}\\b`).test(text));
  assert.deepEqual(unused, []);
});

test("the reference lists every code, each with what it means", async () => {
  const page = await readFile(join(root, "docs/reference.md"), "utf8");
  for (const code of tables.flatMap((table) => Object.keys(table))) {
    assert.match(page, new RegExp(`^\\| \`${code}\` \\| .{3}`, "m"));
  }
  for (const [name, code] of Object.entries(workerExit)) {
    assert.ok(name in workerExitMeanings);
    assert.match(page, new RegExp(`^\\| ${code} \\| .{3}`, "m"));
  }
});

import assert from "node:assert/strict";
import test from "node:test";
import { type Command, matchCommands } from "../../src/dashboard/commands/match-commands.ts";

const commands: readonly Command[] = [
  { id: "1", kind: "Job", label: "face detector", detail: "Failed · cpu", leadsTo: "/jobs/1" },
  { id: "2", kind: "Job", label: "detector", detail: "Completed · cpu-int8", leadsTo: "/jobs/2" },
  { id: "3", kind: "Page", label: "Targets", detail: "", leadsTo: "/targets" },
];

function find(text: string): string[] {
  return matchCommands(commands, text).map(({ id }) => id);
}

test("matchCommands() finds all words anywhere, names that begin with the text first", () => {
  assert.deepEqual(find("detector"), ["2", "1"]);
  assert.deepEqual(find("DETECTOR failed"), ["1"]);
  assert.deepEqual(find("page"), ["3"]);
  assert.deepEqual(find(" "), ["1", "2", "3"]);
  assert.deepEqual(find("decoder"), []);
});

import assert from "node:assert/strict";
import test from "node:test";
import { parseAnsi } from "../../src/dashboard/job/parse-ansi.ts";

const esc = "\x1b";
const lines: [string, string, { text: string; looks: string[] }[]][] = [
  ["a plain line", "[fetch] done", [{ text: "[fetch] done", looks: [] }]],
  ["no text", "", []],
  [
    "colours, bold, and their end",
    `a ${esc}[1;31mred${esc}[39m bold${esc}[0m b`,
    [
      { text: "a ", looks: [] },
      { text: "red", looks: ["ansi-bold", "ansi-red-fg"] },
      { text: " bold", looks: ["ansi-bold"] },
      { text: " b", looks: [] },
    ],
  ],
  ["bright colours", `${esc}[92mgo`, [{ text: "go", looks: ["ansi-bright-green-fg"] }]],
  [
    "a link, of which the text is left",
    `${esc}]8;;javascript:alert(1)${esc}\\here${esc}]8;;${esc}\\`,
    [{ text: "here", looks: [] }],
  ],
  ["movements of the cursor", `${esc}[2K${esc}[1Gready`, [{ text: "ready", looks: [] }]],
  ["a look that breaks off", `ready${esc}[3`, [{ text: `ready${esc}[3`, looks: [] }]],
];

for (const [title, line, parts] of lines) {
  test(`parseAnsi() takes ${title}`, () => assert.deepEqual(parseAnsi(line), parts));
}

import assert from "node:assert/strict";
import { test } from "node:test";
import { formatBytes } from "../../src/contract/text/format-bytes.ts";

test("formatBytes() writes sizes with three digits", () => {
  const cases: [number, string][] = [
    [0, "0 bytes"],
    [999, "999 bytes"],
    [1000, "1.00 kB"],
    [9_996, "10.0 kB"],
    [99_960, "100 kB"],
    [999_600, "1.00 MB"],
    [4_745_517, "4.75 MB"],
    [3_000_000_000, "3.00 GB"],
    [5e15, "5000 TB"],
  ];
  for (const [bytes, text] of cases) assert.equal(formatBytes(bytes), text);
});

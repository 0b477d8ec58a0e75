import assert from "node:assert/strict";
import test from "node:test";
import { scaleScroll } from "../../src/dashboard/job/scale-scroll.ts";

const viewPx = 420;

test("scaleScroll() reaches the end of any number of rows, below what browsers draw", () => {
  for (const rowsPx of [0, 20, viewPx, 10_000_000, 21_276_600, 2_000_000_000]) {
    const { heightPx, factor } = scaleScroll(rowsPx, viewPx);
    assert.ok(heightPx <= 17_000_000, `${rowsPx}`);
    const end = (heightPx - viewPx) * factor;
    assert.ok(Math.abs(end - (rowsPx - viewPx)) < 1, `${rowsPx}`);
  }
});

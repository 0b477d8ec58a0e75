import assert from "node:assert/strict";
import { test } from "node:test";
import { logEvent, recordsWithWorker } from "./recorded-worker.ts";

test("logs.read() resumes after a line", async () => {
  const { records, id } = await recordsWithWorker();
  const events = Array.from({ length: 1000 }, (_, i) => logEvent(i + 1, `line ${i + 1}`));
  await records.workers.recordEvents(id, 1, events);
  const lines = await records.logs.read(id, { after: 997, limit: 2 });
  assert.deepEqual(
    lines.map((line) => line.text),
    ["line 998", "line 999"],
  );
  await records.close();
});

import assert from "node:assert/strict";
import test from "node:test";
import { negotiateMediaType } from "../../src/server/http/negotiate-media-type.ts";

const offered = ["text/plain", "text/event-stream", "application/x-ndjson"] as const;

const cases: [string | undefined, string][] = [
  [undefined, "text/plain"],
  ["*/*", "text/plain"],
  ["text/*", "text/plain"],
  ["text/event-stream", "text/event-stream"],
  ["Text/Event-Stream; charset=utf-8", "text/event-stream"],
  ["application/*", "application/x-ndjson"],
  ["text/plain;q=0.5, text/event-stream", "text/event-stream"],
  ["text/plain; q=0.2, application/x-ndjson; q=0.30", "application/x-ndjson"],
  ["*/*, text/plain;q=0", "text/event-stream"],
  ["text/html, */*;q=0.1", "text/plain"],
];

for (const [accept, type] of cases) {
  test(`negotiateMediaType() answers Accept "${accept}" with ${type}`, () => {
    assert.equal(negotiateMediaType(accept, offered), type);
  });
}

for (const accept of ["text/html", "text/plain;q=0", "image/*", "*/*;q=0"]) {
  test(`negotiateMediaType() refuses Accept "${accept}"`, () => {
    assert.throws(() => negotiateMediaType(accept, offered), { code: "not_acceptable" });
  });
}

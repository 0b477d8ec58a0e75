import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import test from "node:test";
import { limits } from "../../src/contract/limits.ts";
import { makeTestApp, problemIn } from "../server/test-app.ts";
import { startGitHubWithApp } from "./reported-batch.ts";

const webhookSecret = "s3cret";

test("an address that leaves events unfinished has no more read, and others do", async (t) => {
  const { credentials } = await startGitHubWithApp(t);
  const { app } = await makeTestApp(t, { github: { ...credentials, webhookSecret } });
  const deliver = async (remoteAddress: string, body: string | ReadableStream<Uint8Array>) => {
    const signed = typeof body === "string" ? body : "";
    const signature = createHmac("sha256", webhookSecret).update(signed).digest("hex");
    const headers = { "x-github-event": "ping", "x-hub-signature-256": `sha256=${signature}` };
    const init = { method: "POST", headers, body, duplex: "half" } as const;
    return app.request("/github/webhook", init, { incoming: { socket: { remoteAddress } } });
  };
  const senders: ReadableStreamDefaultController<Uint8Array>[] = [];
  const unfinished = Array.from({ length: limits.githubEventsAtOncePerAddress }, () => {
    const body = new ReadableStream<Uint8Array>({ start: (sender) => void senders.push(sender) });
    return deliver("192.0.2.1", body);
  });
  const problem = await problemIn(await deliver("192.0.2.1", "{}"));
  assert.equal(problem.status, 503);
  assert.equal((await deliver("192.0.2.2", "{}")).status, 204);
  for (const sender of senders) sender.close();
  for (const answer of unfinished) assert.equal((await answer).status, 204);
  assert.equal((await deliver("192.0.2.1", "{}")).status, 204);
});

test("an event of more than a MiB is not read", async (t) => {
  const { credentials } = await startGitHubWithApp(t);
  const { app } = await makeTestApp(t, { github: { ...credentials, webhookSecret } });
  const answer = await app.request("/github/webhook", {
    method: "POST",
    body: "x".repeat(1024 * 1024 + 1),
  });
  assert.equal((await problemIn(answer)).code, "payload_too_large");
});

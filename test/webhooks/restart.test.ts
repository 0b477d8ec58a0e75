import assert from "node:assert/strict";
import { once } from "node:events";
import test from "node:test";
import { startRunningService } from "../support/running-service.ts";
import { startReceiver, statusAnswer } from "./receiver.ts";

const environment = { MOS_ALLOW_PRIVATE_ADDRESSES: "true" };

test("an event that a receiver did not take is sent after a crash of the service", async (t) => {
  const receiver = await startReceiver(t);
  const service = await startRunningService(t, { environment });
  const { client, directory, token } = service;
  receiver.answerWith(statusAnswer(503));
  const body = { url: receiver.url, events: ["job.pending" as const] };
  await client.call("createWebhook", { body });
  const { id } = await client.call("startCompression", {
    body: { model: { source: "https://models.example/none.onnx" }, target: "cpu" },
  });
  const first = await receiver.next(0);
  const killed = once(service.process, "exit");
  service.process.kill("SIGKILL");
  await killed;
  receiver.answerWith(statusAnswer(204));
  await startRunningService(t, { from: { directory, token }, environment });
  const again = await receiver.next(1);
  assert.equal(again.id, first.id);
  assert.equal(again.event.data.id, id);
});

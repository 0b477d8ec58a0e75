import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import type { TestContext } from "node:test";
import { webhookEvent } from "../../src/contract/deliveries/webhook.ts";
import { listenLocally } from "../support/listen-locally.ts";
import { ChangeSignal } from "../support/until.ts";

type Answer = (response: ServerResponse) => void;

function parseDelivered({ headers }: IncomingMessage, body: string) {
  const header = (name: string) => String(headers[name]);
  return {
    id: header("webhook-id"),
    timestamp: header("webhook-timestamp"),
    signatures: header("webhook-signature").split(" "),
    body,
    /** By the contract, which an event that a version before queued need not meet. */
    get event() {
      return webhookEvent.parse(JSON.parse(body));
    },
  };
}

/** A real receiver of webhooks, which answers 204 until it is set otherwise. */
export async function startReceiver(t: Pick<TestContext, "after">) {
  const received: ReturnType<typeof parseDelivered>[] = [];
  let answer: Answer = (response) => response.writeHead(204).end();
  const arrived = new ChangeSignal();
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      received.push(parseDelivered(request, body));
      arrived.notify();
      answer(response);
    });
  });
  const url = await listenLocally(t, server);
  return {
    url,
    received,
    answerWith: (next: Answer) => void (answer = next),
    /** The delivery of the number, from 0, as soon as it is there. */
    next: (number: number) =>
      arrived.until(`delivery ${number} has arrived`, () => received[number]),
  };
}

export const statusAnswer =
  (status: number, headers = {}): Answer =>
  (response) =>
    response.writeHead(status, headers).end();

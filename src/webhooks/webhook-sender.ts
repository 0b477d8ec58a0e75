import { type Dispatcher, request } from "undici";
import { z } from "zod";
import { signEvent } from "./sign-event.ts";
import { webhookLinks } from "../contract/deliveries/webhook.ts";
import { limits } from "../contract/limits.ts";
import { truncate } from "../contract/text/truncate.ts";
import { errorMessage } from "../log/error-message.ts";
import type { Log } from "../log/json-log.ts";
import { whileLeading } from "../records/database/while-leading.ts";
import type { AttemptOutcome, DueDelivery } from "../records/deliveries/webhook-queue.ts";
import type { Records } from "../records/open-records.ts";
import { type Connections, openConnections } from "../storage/connections.ts";
import { checkUrl } from "../storage/public-address.ts";

interface WebhookSenderOptions {
  readonly records: Pick<Records, "webhookQueue" | "changes" | "replica">;
  readonly allowPrivateAddresses: boolean;
  /** Address at which people reach the service, without `/v1`; without it links are relative. */
  readonly publicUrl: string | undefined;
  readonly now: () => Date;
  readonly log: Log;
}

/** Retries come due without a notification, so look for them. */
const recheckMs = 1_000;

/**
 * Sends the events that are queued for webhooks, each at least once, until it is stopped. Of
 * several replicas the leader does.
 */
export function startWebhookSender(options: WebhookSenderOptions): AsyncDisposable {
  return new WebhookSender(options);
}

class WebhookSender implements AsyncDisposable {
  readonly #options: WebhookSenderOptions;
  readonly #connections: Connections;
  /** Of each webhook. */
  readonly #underWay = new Map<string, Set<Promise<void>>>();
  readonly #loop: AsyncDisposable;
  #wake = () => {};

  constructor(options: WebhookSenderOptions) {
    const { records, log } = options;
    this.#options = options;
    this.#connections = openConnections(options);
    this.#loop = whileLeading(records.replica, async (signal) => this.#startDue(signal), {
      everyMs: recheckMs,
      wakeOn: (wake) => {
        this.#wake = wake;
        return records.changes.on("sending", wake);
      },
      onError: (error) => log("error", "Webhooks cannot be read", { error }),
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#loop[Symbol.asyncDispose]();
    await Promise.all([...this.#underWay.values()].flatMap((present) => [...present]));
    await this.#connections[Symbol.asyncDispose]();
  }

  async #startDue(signal: AbortSignal): Promise<void> {
    const { webhookQueue } = this.#options.records;
    for (const webhookId of await webhookQueue.listDue()) {
      const present = this.#underWay.get(webhookId) ?? new Set();
      const room = limits.webhookDeliveriesAtOnce - present.size;
      if (room <= 0) continue;
      this.#underWay.set(webhookId, present);
      const begun = await webhookQueue.begin(webhookId, room);
      for (const delivery of begun) this.#track(present, this.#deliver(delivery, signal));
    }
  }

  #track(present: Set<Promise<void>>, sent: Promise<void>): void {
    const ended = sent.finally(() => {
      present.delete(ended);
      this.#wake();
    });
    present.add(ended);
  }

  async #deliver(delivery: DueDelivery, signal: AbortSignal): Promise<void> {
    const sending = { ...this.#options, dispatcher: this.#connections.strangers, signal };
    const outcome = await sendEvent(delivery, sending);
    // What the end of the service interrupted is sent again after its start.
    if (signal.aborted && !outcome.isDelivered) return;
    await this.#options.records.webhookQueue.end(delivery, outcome).catch((error: unknown) => {
      this.#options.log("error", "A delivery cannot be recorded", { error });
    });
  }
}

interface SendOptions {
  readonly dispatcher: Dispatcher;
  readonly allowPrivateAddresses: boolean;
  readonly publicUrl: string | undefined;
  readonly now: () => Date;
  readonly signal: AbortSignal;
}

const gone = 410;
const maxErrorLength = 300;

/** Sends an event once. Whatever goes wrong is in the outcome. */
async function sendEvent(delivery: DueDelivery, options: SendOptions): Promise<AttemptOutcome> {
  try {
    const status = await postEvent(delivery, options);
    const isDelivered = status >= 200 && status < 300;
    const error = isDelivered ? null : describeStatus(status);
    return { isDelivered, isGone: status === gone, responseStatus: status, error };
  } catch (error) {
    const text = truncate(errorMessage(error), maxErrorLength);
    return { isDelivered: false, isGone: false, responseStatus: null, error: text };
  }
}

async function postEvent(
  { id, url, body: queued, secrets }: DueDelivery,
  { dispatcher, allowPrivateAddresses, publicUrl, now, signal }: SendOptions,
): Promise<number> {
  checkUrl(new URL(url), allowPrivateAddresses);
  const body = publicUrl === undefined ? queued : withAbsoluteLinks(queued, publicUrl);
  const timestamp = Math.floor(now().getTime() / 1000);
  const timeLimit = AbortSignal.timeout(limits.webhookAnswerSeconds * 1000);
  const answer = await request(url, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      "user-agent": "model-optimization-service",
      ...signEvent({ id, timestamp, body }, secrets),
    },
    body,
    dispatcher,
    signal: AbortSignal.any([signal, timeLimit]),
  });
  await answer.body.dump({ limit: limits.webhookAnswerBytes });
  return answer.statusCode;
}

/** What of a queued event is changed before it is sent; a version before may have queued it. */
const linkedEvent = z.looseObject({
  data: z.looseObject({ links: webhookLinks }),
});

function withAbsoluteLinks(body: string, publicUrl: string): string {
  const { data, ...event } = linkedEvent.parse(JSON.parse(body));
  const { self, page } = data.links;
  const links = { self: publicUrl + self, page: page && publicUrl + page };
  return JSON.stringify({ ...event, data: { ...data, links } });
}

function describeStatus(status: number): string {
  const isRedirect = status >= 300 && status < 400;
  return `The receiver answered ${status}${isRedirect ? "; redirects are not followed" : ""}`;
}

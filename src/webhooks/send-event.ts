import { type Dispatcher, request } from "undici";
import { limits } from "../contract/limits.ts";
import { webhookEvent } from "../contract/jobs/webhook.ts";
import { truncate } from "../contract/text/bounded-text.ts";
import { errorMessage } from "../log/error-message.ts";
import type {
  AttemptOutcome,
  DueDelivery,
} from "../records/deliveries/webhook-delivery-records.ts";
import { checkUrl } from "../storage/public-address.ts";
import { signEvent } from "./sign-event.ts";

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
export async function sendEvent(
  delivery: DueDelivery,
  options: SendOptions,
): Promise<AttemptOutcome> {
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

function withAbsoluteLinks(body: string, publicUrl: string): string {
  const { data, ...event } = webhookEvent.parse(JSON.parse(body));
  const links = { self: publicUrl + data.links.self };
  return JSON.stringify({ ...event, data: { ...data, links } });
}

function describeStatus(status: number): string {
  const isRedirect = status >= 300 && status < 400;
  return `The receiver answered ${status}${isRedirect ? "; redirects are not followed" : ""}`;
}

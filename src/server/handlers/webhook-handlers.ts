import { ServiceError } from "../../contract/errors.ts";
import { limits } from "../../contract/limits.ts";
import { createdWebhook } from "../../contract/deliveries/webhook.ts";
import { checkUrl } from "../../storage/public-address.ts";
import { generateWebhookSecret } from "../../webhooks/sign-event.ts";
import { createOnce } from "./idempotency.ts";
import { validationError } from "../http/field-errors.ts";
import { notFoundError } from "../http/problem-response.ts";
import type { RouteHandlers } from "../http/bind-routes.ts";
import type { ServerContext } from "../http/server-context.ts";

type WebhookHandlers = Pick<
  RouteHandlers,
  | "listWebhooks"
  | "createWebhook"
  | "getWebhook"
  | "rotateWebhook"
  | "enableWebhook"
  | "deleteWebhook"
  | "listDeliveries"
  | "replayDelivery"
>;

const hourMs = 3_600_000;

export const webhookHandlers: WebhookHandlers = {
  async listWebhooks({ records }, { caller }) {
    return { status: 200, json: { webhooks: await records.webhooks.list(caller.project) } };
  },

  async createWebhook({ records, limits: { allowPrivateAddresses } }, input) {
    const { caller, body, audit } = input;
    requireReceiver(body.url, allowPrivateAddresses);
    const request = { ...body, secret: generateWebhookSecret() };
    const { created, headers } = await createOnce(records, input, createdWebhook, (idempotency) =>
      records.webhooks.create(caller.project, request, { idempotency, audit }),
    );
    const location = `/v1/webhooks/${created.id}`;
    return { status: 201, json: created, headers: { location, ...headers } };
  },

  async getWebhook({ records }, { caller, params }) {
    return { status: 200, json: await requireWebhook(records, caller.project, params.id) };
  },

  async rotateWebhook({ records, now }, { caller: { project }, params: { id }, audit }) {
    const oldUntil = new Date(now().getTime() + limits.rotationHours * hourMs).toISOString();
    const rotation = { secret: generateWebhookSecret(), oldUntil };
    const rotated = await records.webhooks.rotate({ project, id, audit }, rotation);
    if (!rotated) throw notFoundError("webhook", id);
    return { status: 201, json: rotated };
  },

  async enableWebhook({ records }, { caller: { project }, params: { id }, audit }) {
    const enabled = await records.webhooks.enable({ project, id, audit });
    if (!enabled) throw notFoundError("webhook", id);
    return { status: 200, json: enabled };
  },

  async deleteWebhook({ records }, { caller: { project }, params: { id }, audit }) {
    if (await records.webhooks.delete({ project, id, audit })) return { status: 204 };
    throw notFoundError("webhook", id);
  },

  async listDeliveries({ records }, { caller, params, query }) {
    await requireWebhook(records, caller.project, params.id);
    return { status: 200, json: await records.webhookDeliveries.list(params.id, query) };
  },

  async replayDelivery({ records }, { caller, params: { id, delivery }, audit }) {
    await requireWebhook(records, caller.project, id);
    const again = await records.webhookDeliveries.replay(id, delivery, audit);
    if (!again) throw notFoundError("delivery", delivery);
    return { status: 202, json: again };
  },
};

/** @throws ServiceError validation_failed for an address that events are not sent to */
function requireReceiver(url: string, allowPrivateAddresses: boolean): void {
  try {
    checkUrl(new URL(url), allowPrivateAddresses);
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    throw validationError([{ pointer: "/url", message: error.message }]);
  }
}

async function requireWebhook({ webhooks }: ServerContext["records"], project: string, id: string) {
  const found = await webhooks.find(project, id);
  if (!found) throw notFoundError("webhook", id);
  return found;
}

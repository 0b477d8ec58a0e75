import { z } from "zod";
import { createdHeaders, creationErrors, creationHeaders } from "../jobs/creation.ts";
import { deliveryId, webhookId } from "../id.ts";
import { limits } from "../limits.ts";
import { nextCursor, pageFields } from "../page.ts";
import type { Route } from "./route.ts";
import { createdWebhook, webhook, webhookDelivery, webhookRequest } from "../deliveries/webhook.ts";

const deliveryQuery = z.strictObject(pageFields);
export type DeliveryQuery = z.infer<typeof deliveryQuery>;

const deliveryPage = z
  .object({ deliveries: z.array(webhookDelivery), nextCursor })
  .meta({ id: "WebhookDeliveryPage" });
export type DeliveryPage = z.infer<typeof deliveryPage>;

export const webhookRoutes = {
  listWebhooks: {
    method: "GET",
    path: "/webhooks",
    summary: "List webhooks",
    action: "manageWebhooks",
    replies: {
      200: { json: z.object({ webhooks: z.array(webhook) }).meta({ id: "WebhookList" }) },
    },
    errors: [],
  },
  createWebhook: {
    method: "POST",
    path: "/webhooks",
    summary: "Have changes of jobs' and batches' statuses sent to an address, signed",
    action: "manageWebhooks",
    headers: creationHeaders,
    body: webhookRequest,
    bodyBytes: 16_384,
    audited: true,
    replies: { 201: { json: createdWebhook, headers: createdHeaders } },
    errors: [...creationErrors, "too_many_webhooks"],
  },
  getWebhook: {
    method: "GET",
    path: "/webhooks/{id}",
    summary: "A webhook, why it is disabled, and which events it missed",
    action: "manageWebhooks",
    params: z.object({ id: webhookId }),
    replies: { 200: { json: webhook } },
    errors: ["not_found"],
  },
  rotateWebhook: {
    method: "POST",
    path: "/webhooks/{id}/rotate",
    summary:
      "Replace a webhook's secret; deliveries are signed with the old one too for " +
      `${limits.rotationHours} hours`,
    action: "manageWebhooks",
    params: z.object({ id: webhookId }),
    audited: true,
    replies: { 201: { json: createdWebhook } },
    errors: ["not_found"],
  },
  enableWebhook: {
    method: "POST",
    path: "/webhooks/{id}/enable",
    summary: "Go on with a webhook that was disabled",
    action: "manageWebhooks",
    params: z.object({ id: webhookId }),
    audited: true,
    replies: { 200: { json: webhook } },
    errors: ["not_found"],
  },
  deleteWebhook: {
    method: "DELETE",
    path: "/webhooks/{id}",
    summary: "Delete a webhook with its deliveries",
    action: "manageWebhooks",
    params: z.object({ id: webhookId }),
    audited: true,
    replies: { 204: { empty: true } },
    errors: ["not_found"],
  },
  listDeliveries: {
    method: "GET",
    path: "/webhooks/{id}/deliveries",
    summary: `Deliveries of a webhook, newest first, kept for ${limits.webhookDeliveryDays} days`,
    action: "manageWebhooks",
    params: z.object({ id: webhookId }),
    query: deliveryQuery,
    replies: { 200: { json: deliveryPage } },
    errors: ["invalid_cursor", "not_found"],
  },
  replayDelivery: {
    method: "POST",
    path: "/webhooks/{id}/deliveries/{delivery}/replay",
    summary: "Deliver an event again, with the same `webhook-id`",
    action: "manageWebhooks",
    params: z.object({ id: webhookId, delivery: deliveryId }),
    audited: true,
    replies: { 202: { json: webhookDelivery } },
    errors: ["not_found", "too_many_deliveries"],
  },
} as const satisfies Record<string, Route>;

import { z } from "zod";
import { createdHeaders, creationErrors, creationHeaders } from "../jobs/creation.ts";
import { tokenId } from "../id.ts";
import { limits } from "../limits.ts";
import type { Route } from "./route.ts";
import { trustCheck, trustCheckRequest } from "../people/trust-check.ts";
import {
  createdToken,
  exchangedToken,
  exchangeRequest,
  token,
  tokenRequest,
} from "../people/token.ts";

export const tokenRoutes = {
  listTokens: {
    method: "GET",
    path: "/tokens",
    summary: "List access tokens",
    action: "manageTokens",
    replies: { 200: { json: z.object({ tokens: z.array(token) }).meta({ id: "TokenList" }) } },
    errors: [],
  },
  createToken: {
    method: "POST",
    path: "/tokens",
    summary: "Create an access token",
    action: "manageTokens",
    headers: creationHeaders,
    body: tokenRequest,
    bodyBytes: 4096,
    audited: true,
    replies: { 201: { json: createdToken, headers: createdHeaders } },
    errors: [...creationErrors, "not_found"],
  },
  exchangeToken: {
    method: "POST",
    path: "/tokens/exchange",
    summary: "Exchange a workflow's identity token for an access token",
    action: "exchangeIdentity",
    open: true,
    body: exchangeRequest,
    // Anybody can send it: the longest token and little else.
    bodyBytes: 20_480,
    replies: { 200: { json: exchangedToken } },
    errors: [
      "unsupported_media_type",
      "payload_too_large",
      "identity_token_invalid",
      "identity_token_refused",
    ],
  },
  checkTrustPolicy: {
    method: "POST",
    path: "/trust-policy/check",
    summary: "Which access token a workflow would get for its identity token",
    action: "readTrustPolicy",
    body: trustCheckRequest,
    bodyBytes: 32_768,
    replies: { 200: { json: trustCheck } },
    errors: ["unsupported_media_type", "payload_too_large", "identity_token_refused"],
  },
  getOwnToken: {
    method: "GET",
    path: "/tokens/self",
    summary: "The access token of the request",
    action: "manageOwnToken",
    replies: { 200: { json: token } },
    errors: ["not_found"],
  },
  revokeOwnToken: {
    method: "DELETE",
    path: "/tokens/self",
    summary: "Revoke the access token of the request",
    action: "manageOwnToken",
    audited: true,
    replies: { 204: { empty: true } },
    errors: ["not_found"],
  },
  rotateToken: {
    method: "POST",
    path: "/tokens/{id}/rotate",
    summary: `Replace an access token; the old one is valid for ${limits.rotationHours} hours more`,
    action: "manageTokens",
    params: z.object({ id: tokenId }),
    audited: true,
    replies: { 201: { json: createdToken, headers: ["location"] } },
    errors: ["not_found", "token_replaced"],
  },
  revokeToken: {
    method: "DELETE",
    path: "/tokens/{id}",
    summary: "Revoke an access token",
    action: "manageTokens",
    params: z.object({ id: tokenId }),
    audited: true,
    replies: { 204: { empty: true } },
    errors: ["not_found"],
  },
} as const satisfies Record<string, Route>;

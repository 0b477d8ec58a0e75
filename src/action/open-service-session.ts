import * as core from "@actions/core";
import type { Dispatcher } from "undici";
import { createServiceClient, type ServiceClient } from "./service-client.ts";
import type { Scope } from "../contract/people/token.ts";
import { ExchangedToken } from "./exchanged-token.ts";
import type { Credentials } from "./resolve-credentials.ts";

interface ServiceSession {
  readonly client: ServiceClient;
  /** What the token allows, where the service stated it. */
  readonly scopes: readonly Scope[] | undefined;
}

export async function openServiceSession(
  credentials: Credentials,
  connection: { readonly baseUrl: string; readonly dispatcher: Dispatcher },
): Promise<ServiceSession> {
  if ("token" in credentials) {
    const { token } = credentials;
    core.setSecret(token);
    return { client: createServiceClient({ ...connection, token }), scopes: undefined };
  }
  const exchanged = new ExchangedToken(createServiceClient(connection), credentials.audience);
  const scopes = await exchanged.exchange();
  return { client: createServiceClient({ ...connection, token: () => exchanged.value }), scopes };
}

import * as core from "@actions/core";
import type { Dispatcher } from "undici";
import { type Client, createClient } from "../client/create-client.ts";
import type { Scope } from "../contract/token.ts";
import { ExchangedToken } from "./exchanged-token.ts";
import type { Credentials } from "./resolve-credentials.ts";

interface ServiceSession {
  readonly client: Client;
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
    return { client: createClient({ ...connection, token }), scopes: undefined };
  }
  const exchanged = new ExchangedToken(createClient(connection), credentials.audience);
  const scopes = await exchanged.exchange();
  return { client: createClient({ ...connection, token: () => exchanged.value }), scopes };
}

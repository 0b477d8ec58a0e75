import * as core from "@actions/core";
import type { Dispatcher } from "undici";
import { type Client, createClient } from "../client/create-client.ts";
import type { Scope } from "../contract/token.ts";
import { InputError } from "./input-error.ts";
import type { Inputs } from "./read-inputs.ts";
import type { WorkflowRun } from "./workflow-run.ts";

/** A new token is got so long before the one in use ends. */
const renewalMarginMs = 5 * 60_000;
const renewalRetryMs = 30_000;

export interface ServiceSession {
  readonly client: Client;
  /** What the token allows, where the service told it. */
  readonly scopes: readonly Scope[] | undefined;
}

/** How the step proves to the service who it is. */
export type Credentials = { readonly token: string } | { readonly audience: string };

/**
 * What the step has to prove who it is; undefined where GitHub gives the workflow nothing, since it works on changes of
 * somebody else.
 * @throws InputError where the workflow's author could have given something
 */
export function resolveCredentials(
  inputs: Pick<Inputs, "token" | "audience" | "service-url">,
  { untrusted }: Pick<WorkflowRun, "untrusted">,
  environment: NodeJS.ProcessEnv,
): Credentials | undefined {
  if (inputs.token !== undefined) return { token: inputs.token };
  if (environment["ACTIONS_ID_TOKEN_REQUEST_URL"]) {
    return { audience: inputs.audience ?? inputs["service-url"].replace(/\/v1$/, "") };
  }
  if (untrusted) return undefined;
  const message =
    'Input "token" is missing, and the workflow has no OIDC token: give the job `permissions: id-token: write`, or `token` a secret';
  throw new InputError([{ message }]);
}

/** Connects with the service. A token that was exchanged for the workflow's is renewed as long as the process lives. */
export async function openServiceSession(
  credentials: Credentials,
  { baseUrl, dispatcher }: { readonly baseUrl: string; readonly dispatcher: Dispatcher },
): Promise<ServiceSession> {
  if ("token" in credentials) {
    core.setSecret(credentials.token);
    return {
      client: createClient({ baseUrl, token: credentials.token, dispatcher }),
      scopes: undefined,
    };
  }
  const open = createClient({ baseUrl, dispatcher });
  let token = "";
  const exchange = async () => {
    const identity = await core.getIDToken(credentials.audience);
    const exchanged = await open.call("exchangeToken", { body: { token: identity } });
    ({ token } = exchanged);
    core.setSecret(token);
    renewIn(Date.parse(exchanged.expiresAt) - Date.now() - renewalMarginMs);
    return exchanged.scopes;
  };
  const renewIn = (ms: number) => {
    setTimeout(() => void renew(), Math.max(ms, renewalRetryMs)).unref();
  };
  const renew = async () => {
    try {
      await exchange();
    } catch (error) {
      core.info(`The access token was not renewed yet: ${String(error)}`);
      renewIn(renewalRetryMs);
    }
  };
  const scopes = await exchange();
  return { client: createClient({ baseUrl, token: () => token, dispatcher }), scopes };
}

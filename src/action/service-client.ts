import * as core from "@actions/core";
import type { Dispatcher } from "undici";
import { InputError } from "./explain-error.ts";
import type { Inputs } from "./inputs.ts";
import { logLine } from "./print-output.ts";
import type { WorkflowRun } from "./workflow-run.ts";
import { type Client, createClient } from "../client/create-client.ts";
import { retryTransient } from "../client/retry.ts";
import type { Scope } from "../contract/people/token.ts";
import { artifactRoutes } from "../contract/routes/artifact-routes.ts";
import { batchRoutes } from "../contract/routes/batch-routes.ts";
import { jobRoutes } from "../contract/routes/job-routes.ts";
import { logRoutes } from "../contract/routes/log-routes.ts";
import { modelRoutes } from "../contract/routes/model-routes.ts";
import { targetRoutes } from "../contract/routes/service-routes.ts";
import { tokenRoutes } from "../contract/routes/token-routes.ts";

const { exchangeToken } = tokenRoutes;

/** What a step asks of the service. */
const routes = {
  ...artifactRoutes,
  ...batchRoutes,
  ...jobRoutes,
  ...logRoutes,
  ...modelRoutes,
  ...targetRoutes,
  exchangeToken,
};

export type ServiceClient = Client<keyof typeof routes>;

function createServiceClient(
  connection: Omit<Parameters<typeof createClient>[0], "routes">,
): ServiceClient {
  return createClient({ ...connection, routes });
}

interface ServiceSession {
  readonly client: ServiceClient;
  /** What the token allows, where the service stated it. */
  readonly scopes: readonly Scope[] | undefined;
}

export async function openServiceSession(
  credentials: Credentials,
  { serviceUrl, dispatcher }: { readonly serviceUrl: string; readonly dispatcher: Dispatcher },
): Promise<ServiceSession> {
  const connection = { baseUrl: `${serviceUrl}/v1`, dispatcher };
  if ("token" in credentials) {
    const { token } = credentials;
    core.setSecret(token);
    return { client: createServiceClient({ ...connection, token }), scopes: undefined };
  }
  const exchanged = new ExchangedToken(createServiceClient(connection), credentials.audience);
  // Each time with another identity token: the service may have used up the one before.
  const scopes = await retryTransient(async () => exchanged.exchange(), undefined);
  return { client: createServiceClient({ ...connection, token: () => exchanged.value }), scopes };
}

/** Before the token expires. */
const renewalMarginMs = 5 * 60_000;
const renewalRetryMs = 30_000;

/** A token of the service in exchange for the workflow's, renewed while the process lives. */
class ExchangedToken {
  readonly #client: ServiceClient;
  readonly #audience: string;
  #value = "";

  constructor(client: ServiceClient, audience: string) {
    this.#client = client;
    this.#audience = audience;
  }

  get value(): string {
    return this.#value;
  }

  /** Gets a new token, and schedules its renewal. Gives what it allows. */
  async exchange(): Promise<readonly Scope[]> {
    const identity = await core.getIDToken(this.#audience);
    const body = { token: identity };
    const { token, expiresAt, scopes } = await this.#client.call("exchangeToken", { body });
    this.#value = token;
    core.setSecret(token);
    this.#renewIn(Date.parse(expiresAt) - Date.now() - renewalMarginMs);
    return scopes;
  }

  #renewIn(ms: number): void {
    setTimeout(() => void this.#renew(), Math.max(ms, renewalRetryMs)).unref();
  }

  async #renew(): Promise<void> {
    try {
      await this.exchange();
    } catch (error) {
      logLine(`The access token was not renewed yet: ${String(error)}`);
      this.#renewIn(renewalRetryMs);
    }
  }
}

/** A token of the service, or the audience of the OIDC token that is exchanged for one. */
export type Credentials = { readonly token: string } | { readonly audience: string };

/** Whether GitHub gives the workflow neither a secret nor an identity token. */
export function lacksCredentials(
  { untrusted }: Pick<WorkflowRun, "untrusted">,
  environment: NodeJS.ProcessEnv,
): boolean {
  const isGivenSome = environment["INPUT_TOKEN"]?.trim() || hasIdentityToken(environment);
  return untrusted !== undefined && !isGivenSome;
}

function hasIdentityToken(environment: NodeJS.ProcessEnv): boolean {
  return Boolean(environment["ACTIONS_ID_TOKEN_REQUEST_URL"]);
}

/**
 * The credentials of the step.
 * @throws InputError where it has none
 */
export function resolveCredentials(
  inputs: Pick<Inputs, "token" | "audience" | "service-url">,
  environment: NodeJS.ProcessEnv,
): Credentials {
  if (inputs.token !== undefined) return { token: inputs.token };
  if (hasIdentityToken(environment)) {
    return { audience: inputs.audience ?? inputs["service-url"] };
  }
  const found = 'Input "token" is missing, and the workflow has no OIDC token';
  const advice = "give the job `permissions: id-token: write`, or `token` a secret";
  throw new InputError([{ message: `${found}: ${advice}` }]);
}

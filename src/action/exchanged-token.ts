import * as core from "@actions/core";
import type { ServiceClient } from "./service-client.ts";
import type { Scope } from "../contract/people/token.ts";

/** Before the token expires. */
const renewalMarginMs = 5 * 60_000;
const renewalRetryMs = 30_000;

/** A token of the service in exchange for the workflow's, renewed while the process lives. */
export class ExchangedToken {
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
      core.info(`The access token was not renewed yet: ${String(error)}`);
      this.#renewIn(renewalRetryMs);
    }
  }
}

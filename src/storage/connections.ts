import { lookup } from "node:dns";
import { Agent, type Dispatcher } from "undici";
import "../limits/stray-answers.ts";
import { createPublicLookup } from "./public-address.ts";

/** Connections of one download. */
export interface Connections extends AsyncDisposable {
  /** To public addresses, and where the administrator allows it to private ones. */
  readonly strangers: Dispatcher;
  /** To an origin that the administrator named. */
  readonly trusted: Dispatcher;
}

export function openConnections({
  allowPrivateAddresses,
}: {
  readonly allowPrivateAddresses: boolean;
}): Connections {
  const timeouts = { headersTimeout: 30_000, bodyTimeout: 60_000 };
  const connect = { timeout: 10_000 };
  const trusted = new Agent({ connect: { ...connect, lookup }, ...timeouts });
  const publicLookup = createPublicLookup(lookup);
  const strangers = new Agent({ connect: { ...connect, lookup: publicLookup }, ...timeouts });
  return {
    strangers: allowPrivateAddresses ? trusted : strangers,
    trusted,
    async [Symbol.asyncDispose]() {
      await Promise.all([trusted.destroy(), strangers.destroy()]);
    },
  };
}

import { createCaller } from "../../client/create-caller.ts";
import { routes } from "../../contract/routes/routes.ts";
import type { Transport } from "../../client/transport.ts";
import { fetchTransport } from "./fetch-transport.ts";
import { access, sessionHasEnded } from "./session-state.ts";

const unauthorized = 401;

/** An ended session is noticed by whichever request comes first; those of a sign-in have none. */
const watchedTransport: Transport = async (request) => {
  const answer = await fetchTransport(request);
  if (answer.status === unauthorized && access.value === "in") sessionHasEnded();
  return answer;
};

/** Where the service's interface is. */
export const interfaceUrl = `${location.origin}/v1`;

/** The service that this page is of. */
export const service = createCaller({ routes, baseUrl: interfaceUrl, transport: watchedTransport });

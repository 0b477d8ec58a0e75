import { sendBlob } from "./send-blob.ts";
import { sessionHasEnded } from "./session-state.ts";
import { createCaller } from "../../client/create-caller.ts";
import { silenceLimitMs } from "../../client/follow-logs.ts";
import { ConnectionError, type Transport } from "../../client/transport.ts";
import { access, requestLostSince } from "../shared/connection-state.ts";
import { readServiceTime } from "../shared/clock.ts";
import { routes } from "../../contract/routes/routes.ts";

const unauthorized = 401;

/** An ended session is noticed by whichever request comes first; those of a sign-in have none. */
const watchedTransport: Transport = async (request) => {
  const answer = await fetchTransport(request);
  if (answer.status === unauthorized && access.value === "in") sessionHasEnded();
  return answer;
};

export const interfaceUrl = `${location.origin}/v1`;

/** The service that serves this page. */
export const connection = { routes, baseUrl: interfaceUrl, transport: watchedTransport };
export const service = createCaller(connection);

/** Sends requests of a page with its session's cookie. */
const fetchTransport: Transport = async ({ method, url, headers, body, signal }) => {
  const sent = Object.entries(headers).filter((each): each is [string, string] => !!each[1]);
  const request = { method, headers: sent, signal: signal ?? null };
  const answer =
    typeof body === "object"
      ? await sendBlob(body, url, request)
      : await fetch(url, { ...request, body: body ?? null }).catch((cause: unknown) => {
          if (!isStream(url)) requestLostSince.value ??= readServiceTime();
          return toConnectionError(cause);
        });
  requestLostSince.value = undefined;
  return {
    status: answer.status,
    headers: Object.fromEntries(answer.headers),
    body: {
      text: () => answer.text().catch(toConnectionError),
      [Symbol.asyncIterator]: () => streamBody(answer.body),
    },
  };
};

/** A stream that breaks off is opened again before anybody notices. */
function isStream({ pathname }: URL): boolean {
  return /\/(events|logs)$/.test(pathname);
}

/** `fetch` fails with a TypeError where there is no answer, or not all of it. */
export function toConnectionError(cause: unknown): never {
  if (cause instanceof TypeError) {
    throw new ConnectionError("The service cannot be reached", { cause });
  }
  throw cause;
}

async function* streamBody(body: Response["body"]): AsyncGenerator<Uint8Array, void> {
  const reader = body?.getReader();
  try {
    while (reader !== undefined) {
      const { done, value } = await readInTime(reader);
      if (done) return;
      yield value;
    }
  } finally {
    await reader?.cancel().catch(() => undefined);
  }
}

/** A connection that was lost while the machine slept reports no error. */
async function readInTime(reader: ReadableStreamDefaultReader<Uint8Array>) {
  const { promise, reject } = Promise.withResolvers<never>();
  const silence = new ConnectionError("The service has stopped responding");
  const timer = setTimeout(() => reject(silence), silenceLimitMs);
  try {
    return await Promise.race([reader.read(), promise]).catch(toConnectionError);
  } finally {
    clearTimeout(timer);
  }
}

import { createServer, type IncomingMessage, request as send, type ServerResponse } from "node:http";
import type { TestContext } from "node:test";
import { listenLocally } from "./listen-locally.ts";

interface RelayOptions {
  /** Which answers of the service get lost on their way. */
  readonly isLost: (method: string, path: string) => boolean;
}

export interface ServiceRelay {
  /** Ends in `/v1`, like the service's own. */
  readonly baseUrl: string;
  /** Resolves when the service has given an answer that gets lost. */
  readonly lost: Promise<void>;
}

/** Passes requests on to the service, and what it answers back, but for answers that get lost. */
export async function startServiceRelay(t: TestContext, baseUrl: string, options: RelayOptions): Promise<ServiceRelay> {
  const lost = Promise.withResolvers<void>();
  const server = createServer((request: IncomingMessage, response: ServerResponse) => {
    const { method = "GET", url = "/", headers } = request;
    const onward = send(new URL(url, baseUrl), { method, headers }, (answer) => {
      if (options.isLost(method, url)) {
        answer.resume().on("end", () => lost.resolve());
        return;
      }
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    onward.on("error", () => response.destroy());
    response.on("close", () => onward.destroy());
    request.pipe(onward);
  });
  return { baseUrl: `${await listenLocally(t, server)}/v1`, lost: lost.promise };
}

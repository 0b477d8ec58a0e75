import {
  createServer,
  type IncomingMessage,
  request as send,
  type ServerResponse,
} from "node:http";
import { pipeline } from "node:stream";
import type { TestContext } from "node:test";
import { listenLocally } from "../../support/listen-locally.ts";

interface RelayOptions {
  /** Which answers of the service get lost on their way; by default none. */
  readonly isLost?: (method: string, path: string) => boolean;
  /** Which answers break their connections; by default none. */
  readonly breaksAnswerTo?: (method: string, path: string) => boolean;
  /** Bytes of the first upload after which its connection breaks. */
  readonly breaksUploadAfter?: number;
  /** Bytes of the first upload after which no more of it is passed on. */
  readonly stallsUploadAfter?: number;
}

export interface ServiceRelay {
  /** Ends in `/v1`, like the service's own. */
  readonly baseUrl: string;
  /** Resolves when the service has given an answer that gets lost. */
  readonly lost: Promise<void>;
  /** Resolves when an upload stalls. */
  readonly stalled: Promise<void>;
  /** How many bytes of uploads were passed on. */
  uploadedBytes(): number;
}

/** Passes requests on to the service, and what it answers back, but for what gets lost. */
export async function startServiceRelay(
  t: TestContext,
  baseUrl: string,
  options: RelayOptions,
): Promise<ServiceRelay> {
  const { isLost = () => false, breaksAnswerTo } = options;
  const { breaksUploadAfter = Infinity, stallsUploadAfter = Infinity } = options;
  let uploadedBytes = 0;
  let isDisturbed = false;
  const [lost, stalled] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const server = createServer((request: IncomingMessage, response: ServerResponse) => {
    const { method = "GET", url = "/", headers } = request;
    const onward = send(new URL(url, baseUrl), { method, headers }, (answer) => {
      if (isLost(method, url)) {
        answer.resume().on("end", () => lost.resolve());
        return;
      }
      if (breaksAnswerTo?.(method, url) === true) {
        response.destroy();
        return;
      }
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      // An answer that breaks off does so here, too.
      pipeline(answer, response, () => {});
    });
    onward.on("error", () => response.destroy());
    response.on("close", () => onward.destroy());
    request.pipe(onward);
    if (method !== "PUT") return;
    request.on("data", (chunk: Buffer) => {
      uploadedBytes += chunk.length;
      if (isDisturbed || uploadedBytes < Math.min(breaksUploadAfter, stallsUploadAfter)) return;
      isDisturbed = true;
      if (uploadedBytes >= stallsUploadAfter) {
        request.unpipe(onward).pause();
        stalled.resolve();
      } else {
        onward.destroy();
        request.destroy();
      }
    });
  });
  const url = `${await listenLocally(t, server)}/v1`;
  return {
    baseUrl: url,
    lost: lost.promise,
    stalled: stalled.promise,
    uploadedBytes: () => uploadedBytes,
  };
}

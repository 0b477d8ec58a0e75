import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import { json } from "node:stream/consumers";
import { workerEvents } from "../../../src/contract/worker-protocol/messages.ts";
import type { Records } from "../../../src/records/open-records.ts";
import type { BlobStore } from "../../../src/storage/blob-store.ts";
import { storeSentBlob } from "../../support/store-sent-blob.ts";

/** The requests of a worker, answered from records. */
export async function listenForWorkers(
  records: Records,
  blobs: BlobStore,
  onRequest: (jobId: string, secret: string) => void = () => {},
) {
  const answer: RequestListener = (request, response) => {
    void (async () => {
      const [, , , , jobId = "", events] = (request.url ?? "").split("/");
      const secret = (request.headers.authorization ?? "").slice("Bearer ".length);
      onRequest(jobId, secret);
      const attempt = await records.workers.findAttemptBySecret(
        jobId,
        createHash("sha256").update(secret).digest("hex"),
      );
      if (attempt === undefined) {
        response.writeHead(401).end();
        return;
      }
      if (await storeSentBlob(request, response, blobs)) return;
      const limits = { maxModelBytes: 2 ** 30, allowedRoots: ["/"], allowPrivateAddresses: false };
      const added = { limits, earlierCosts: [] };
      const reply =
        events === undefined
          ? { ...(await records.workers.findAssignment(jobId, attempt)), ...added }
          : await records.workers.recordEvents(
              jobId,
              attempt,
              workerEvents.parse(await json(request)).events,
            );
      response.setHeader("content-type", "application/json").end(JSON.stringify(reply));
    })();
  };
  const server = createServer(answer);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string")
    throw new TypeError("The server has no port");
  return { url: `http://127.0.0.1:${address.port}`, answer, server };
}

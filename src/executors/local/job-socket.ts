import { once } from "node:events";
import { open } from "node:fs/promises";
import { createServer, type RequestListener } from "node:http";

/** Name in the job's folder: paths of sockets are short, and that of the folder may be long. */
export const jobSocketName = "service.sock";

/** A worker needs a few at once: events, a file that it reads and one that it stores. */
const maxConnections = 16;

interface JobSocketOptions {
  readonly jobId: string;
  /** Answers requests of workers. */
  readonly answer: RequestListener;
}

/**
 * Listens in the folder of a job, whose worker has no network, for requests of the worker protocol
 * about that job. Its sources are sent until the worker says that it has read them; their addresses
 * and credentials never are.
 */
export async function openJobSocket(
  directory: string,
  { jobId, answer }: JobSocketOptions,
): Promise<AsyncDisposable> {
  const own = `/worker/v1/jobs/${jobId}`;
  // Anything but a plain path of the job could become another one when parsed.
  const ownPath = new RegExp(`^${own}(/(events|source|blobs/[0-9a-f]+(/[a-z]+)?))?$`);
  let isSourceOpen = true;
  // Files that are stored have no time limit: they only have to move on.
  const server = createServer({ requestTimeout: 0 }, (request, response) => {
    const { method, url = "" } = request;
    const isSource = url === `${own}/source`;
    if (isSource && method === "DELETE") {
      isSourceOpen = false;
      response.writeHead(204).end();
    } else if (!ownPath.test(url) || (isSource && !isSourceOpen)) {
      response.writeHead(404).end();
    } else answer(request, response);
  });
  server.maxConnections = maxConnections;
  await using stack = new AsyncDisposableStack();
  const folder = stack.use(await open(directory));
  server.listen(`/proc/self/fd/${folder.fd}/${jobSocketName}`);
  await once(server, "listening");
  stack.defer(async () => {
    const closed = once(server, "close");
    server.close();
    server.closeAllConnections();
    await closed;
  });
  return stack.move();
}

import { listDataSources } from "../../contract/jobs/recipe-data.ts";
import { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Hono } from "hono";
import type { Dispatcher } from "undici";
import { z } from "zod";
import { ServiceError } from "../../contract/errors.ts";
import { sourceQuestion } from "../../contract/worker-protocol/transfers.ts";
import { limits } from "../../contract/limits.ts";
import { isSourceBeside } from "../../contract/models/model-source.ts";
import { failureReason, modelFetchError } from "../../storage/download.ts";
import { locateSource } from "../../storage/fetch-model.ts";
import {
  PermanentDownloadError,
  readAnswerHeader,
  requestSource,
} from "../../storage/request-source.ts";
import { stripUrlSecrets } from "../../storage/strip-url-secrets.ts";
import { buildResponse } from "../http/build-response.ts";
import { createConcurrencyLimit } from "../http/concurrency-limit.ts";
import { notFoundError } from "../http/problem-response.ts";
import { parseBody, readJson } from "../http/read-request.ts";
import type { ServerContext } from "../http/server-context.ts";
import { authenticateWorker } from "./worker-access.ts";

/** A worker reads one file at a time; what it gave up may not have ended yet. */
const openSources = { all: 256, perCaller: 4 } as const;

/** Files of workers that lie elsewhere: where they are, and their content. */
export function bindWorkerSources(app: Hono, context: ServerContext): void {
  app.post("/worker/v1/jobs/:id/sources", async (c) => {
    const { project, source } = await readOwnSource(context, c.req.param("id"), c.req.raw);
    return c.json(await context.sources.locate(project, source));
  });
  const limitOpen = createConcurrencyLimit(openSources);
  app.post("/worker/v1/jobs/:id/source", async (c) => {
    const id = c.req.param("id");
    const own = await readOwnSource(context, id, c.req.raw);
    using stack = new DisposableStack();
    stack.use(limitOpen(id));
    const answer = await openSource(context, own, c.req.raw);
    stack.use(endWithAttempt(context, id, own.attempt, answer.body));
    const open = stack.move();
    answer.body.once("close", () => open.dispose());
    const headers = relayedHeaders.flatMap((name) => {
      const value = readAnswerHeader(answer, name);
      return value === undefined ? [] : [[name, value]];
    });
    return buildResponse({
      status: answer.statusCode,
      stream: relayBody(answer.body, findConnection(c.env)),
      mediaType: "application/octet-stream",
      headers: Object.fromEntries(headers),
    });
  });
}

/** Ends a body soon after its worker's attempt: its host may never, and its place is others'. */
function endWithAttempt(
  { records }: ServerContext,
  id: string,
  attempt: number,
  body: Dispatcher.ResponseData["body"],
): Disposable {
  const check = async () => {
    if (await records.workers.isOpen(id, attempt)) return;
    body.destroy(new Error("The attempt is over"));
  };
  const timer = setInterval(() => {
    // While the records cannot be read, nobody says that it is over.
    check().catch(() => {});
  }, limits.accessCheckSeconds * 1000);
  return { [Symbol.dispose]: () => clearInterval(timer) };
}

/** The connection on which a request came, if any. */
function findConnection(env: unknown): Socket | undefined {
  const outgoing = z.object({ outgoing: z.instanceof(ServerResponse) }).safeParse(env).data;
  return outgoing?.outgoing.socket ?? undefined;
}

/**
 * A body that breaks off ends the worker's connection, after what has come of it: the worker asks
 * for the rest. An answer that fails would end with the error's text.
 */
function relayBody(
  body: Dispatcher.ResponseData["body"],
  connection: Socket | undefined,
): ReadableStream<Uint8Array> {
  // A body that ends before its first piece is read has no other listener.
  body.on("error", () => {});
  const pieces: AsyncIterator<Uint8Array> = body[Symbol.asyncIterator]();
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { done, value } = await pieces.next();
          if (done) controller.close();
          else controller.enqueue(value);
        } catch (error) {
          if (connection === undefined) throw error;
          connection.destroySoon();
        }
      },
      cancel: () => void body.destroy(),
    },
    { highWaterMark: 0 },
  );
}

interface OwnSource {
  readonly attempt: number;
  readonly project: string;
  readonly source: string;
}

/**
 * A file of a worker's job: its model, what lies beside that, or its data.
 * @throws ServiceError not_found for files of no job of its
 */
async function readOwnSource(
  context: ServerContext,
  id: string,
  request: Request,
): Promise<OwnSource> {
  const { records } = context;
  const { attempt } = await authenticateWorker(context, request, id);
  const assignment = await records.workers.findAssignment(id, attempt);
  const owner = await records.owners.findOfJob(id);
  using held = context.quotas.bodies.ofWorker(id);
  const body = await readJson(request, limits.workerBodyBytes, held);
  const { source } = parseBody(sourceQuestion, body);
  const isOwn =
    assignment !== undefined &&
    (isSourceBeside(source, assignment.model.source) ||
      listDataSources(assignment.recipe).includes(source));
  if (owner === undefined || !isOwn) throw notFoundError("source", source);
  return { attempt, project: owner.project, source };
}

/** What a worker needs to resume a file. */
const relayedHeaders = [
  "content-encoding",
  "content-length",
  "content-range",
  "etag",
  "last-modified",
];

/**
 * Asks for a file as workers with a network do.
 * @throws ServiceError unavailable where it may be asked for again
 */
async function openSource(
  { sources, limits }: ServerContext,
  { project, source }: OwnSource,
  { headers, signal }: Request,
) {
  const located = await locateSource(source, (asked) => sources.locate(project, asked));
  const range = headers.get("range") ?? undefined;
  const asked = { range, "if-range": headers.get("if-range") ?? undefined };
  try {
    return await requestSource(located, { ...limits, headers: asked, signal });
  } catch (error) {
    if (error instanceof ServiceError) throw error;
    if (!(error instanceof PermanentDownloadError)) {
      throw new ServiceError("unavailable", failureReason(error));
    }
    throw modelFetchError(stripUrlSecrets(source), error);
  }
}

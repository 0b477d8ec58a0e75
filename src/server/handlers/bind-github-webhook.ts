import type { Hono } from "hono";
import { limits } from "../../contract/limits.ts";
import { callerGroup } from "../http/remote-address.ts";
import { createConcurrencyLimit } from "../http/concurrency-limit.ts";
import { notFoundError } from "../http/problem-response.ts";
import { readBoundedBody } from "../http/read-request.ts";
import type { ServerContext } from "../http/server-context.ts";

/** Receives GitHub's events, which are signed and have no access token. */
export function bindGitHubWebhook(app: Hono, context: ServerContext): void {
  const enterBody = createConcurrencyLimit({
    all: limits.githubEventsAtOnce,
    perCaller: limits.githubEventsAtOncePerAddress,
  });
  app.post("/github/webhook", async (c) => {
    const { github } = context;
    const { raw } = c.req;
    if (!github?.receive) throw notFoundError("resource", c.req.path);
    await github.receive({
      signature: raw.headers.get("x-hub-signature-256"),
      event: raw.headers.get("x-github-event"),
      body: await readEventBody(raw, enterBody(callerGroup(context, raw, c.env))),
    });
    return c.body(null, 204);
  });
}

/** Its signature is known only after it was read, so that anybody's has to be. */
async function readEventBody(request: Request, place: Disposable): Promise<Uint8Array> {
  using _ = place;
  return await readBoundedBody(request, limits.githubEventBytes);
}

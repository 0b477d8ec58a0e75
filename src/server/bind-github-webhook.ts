import type { Hono } from "hono";
import { limits } from "../contract/limits.ts";
import { notFoundError } from "./not-found-error.ts";
import { readBoundedBody } from "./read-bounded-body.ts";
import type { ServerContext } from "./server-context.ts";

/** Receives GitHub's events, which are signed and have no access token. */
export function bindGitHubWebhook(app: Hono, { github }: ServerContext): void {
  app.post("/github/webhook", async (c) => {
    if (!github?.receive) throw notFoundError("resource", c.req.path);
    const header = (name: string) => c.req.raw.headers.get(name);
    await github.receive({
      signature: header("x-hub-signature-256"),
      event: header("x-github-event"),
      body: await readBoundedBody(c.req.raw, limits.jsonBodyBytes),
    });
    return c.body(null, 204);
  });
}

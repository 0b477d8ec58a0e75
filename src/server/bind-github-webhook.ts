import type { Hono } from "hono";
import { limits } from "../contract/limits.ts";
import { notFoundError } from "./not-found-error.ts";
import { readBoundedBody } from "./read-request.ts";
import type { ServerContext } from "./server-context.ts";

/** Where GitHub delivers its events; they are signed instead of bearing a token. */
export function bindGitHubWebhook(app: Hono, { github }: ServerContext): void {
  app.post("/github/webhook", async (c) => {
    if (!github?.receive) throw notFoundError("resource", c.req.path);
    const header = (name: string) => c.req.raw.headers.get(name);
    await github.receive({
      signature: header("x-hub-signature-256"),
      event: header("x-github-event"),
      delivery: header("x-github-delivery"),
      body: await readBoundedBody(c.req.raw, limits.jsonBodyBytes),
    });
    return c.body(null, 204);
  });
}

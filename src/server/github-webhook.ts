import type { Hono } from "hono";
import { limits } from "../contract/limits.ts";
import { notFound } from "./not-found.ts";
import { readBounded } from "./read-request.ts";
import type { ServerContext } from "./server-context.ts";

/** Where GitHub delivers its events; they are signed instead of bearing a token. */
export function bindGitHubWebhook(app: Hono, { github }: ServerContext): void {
  app.post("/github/webhook", async (c) => {
    if (!github?.receive) throw notFound("resource", c.req.path);
    const header = (name: string) => c.req.raw.headers.get(name);
    await github.receive({
      signature: header("x-hub-signature-256"),
      event: header("x-github-event"),
      delivery: header("x-github-delivery"),
      body: await readBounded(c.req.raw, limits.jsonBodyBytes),
    });
    return c.body(null, 204);
  });
}

import { createServer } from "node:http";
import type { TestContext } from "node:test";
import { getRequestListener } from "@hono/node-server";
import type { TestApp } from "../../server/test-app.ts";
import { listenLocally } from "../../support/listen-locally.ts";

/** Serves the HTTP interface of a service whose jobs are played. @returns its address */
export async function serveApp(t: TestContext, { app }: TestApp): Promise<string> {
  const listener = getRequestListener(app.fetch);
  return listenLocally(
    t,
    createServer((request, response) => void listener(request, response)),
  );
}

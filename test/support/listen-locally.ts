import assert from "node:assert/strict";
import { once } from "node:events";
import type { Server } from "node:http";
import type { TestContext } from "node:test";

/** Has a server listen on a free port of this machine until the end of the test. Gives its origin. */
export async function listenLocally(
  t: Pick<TestContext, "after">,
  server: Server,
): Promise<string> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  const address = server.address();
  assert.ok(typeof address === "object" && address !== null);
  return `http://127.0.0.1:${address.port}`;
}

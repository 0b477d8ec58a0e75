import assert from "node:assert/strict";
import test from "node:test";
import { startHealthServer } from "../../src/controller-runtime/health-server.ts";
import { createRuntimeMetrics } from "../../src/controller-runtime/metrics.ts";
import type { ResourceWatch } from "../../src/controller-runtime/watch-resource.ts";
import { ipv6Missing } from "../support/ipv6-missing.ts";

const pods: ResourceWatch = {
  resource: "pods",
  synced: Promise.resolve(),
  size: 0,
  secondsSinceReceived: 5,
  problem: undefined,
  isHung: false,
  stop: async () => {},
};

async function startServer(
  t: test.TestContext,
  watched: readonly ResourceWatch[],
  metrics = createRuntimeMetrics(),
) {
  const server = await startHealthServer({ host: "127.0.0.1", port: 0, watched, metrics });
  t.after(() => server.close());
  return async (path: string) => {
    const answer = await fetch(`http://127.0.0.1:${server.port}${path}`);
    return `${answer.status} ${await answer.text()}`;
  };
}

test("a process whose watch has died is not healthy, and says which", async (t) => {
  const ask = await startServer(t, [
    pods,
    { ...pods, resource: "jobs", isHung: true, secondsSinceReceived: 700.4 },
  ]);
  assert.equal(await ask("/healthz"), "503 The watch of jobs received nothing for 700 s\n");
  assert.equal(await ask("/readyz?verbose"), "200 ok\n");
});

test("a process is ready when all it reads has arrived", async (t) => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const ask = await startServer(t, [pods, { ...pods, resource: "jobs", synced: promise }]);
  assert.equal(await ask("/readyz"), "503 The list of jobs has not arrived yet\n");
  assert.equal(await ask("/healthz"), "200 ok\n");
  resolve();
  await promise;
  assert.equal(await ask("/readyz"), "200 ok\n");
});

test("figures that cannot be collected are an answer, and so is an unknown path", async (t) => {
  const text = () => Promise.reject(new Error("No figures"));
  const ask = await startServer(t, [], { ...createRuntimeMetrics(), text });
  assert.equal(await ask("/metrics"), "500 No figures\n");
  assert.equal(await ask("/"), "404 Not found\n");
});

test("without an address it answers over IPv6 and IPv4", { skip: ipv6Missing }, async (t) => {
  const metrics = createRuntimeMetrics();
  const server = await startHealthServer({ host: undefined, port: 0, watched: [], metrics });
  t.after(() => server.close());
  for (const host of ["[::1]", "127.0.0.1"]) {
    assert.equal((await fetch(`http://${host}:${server.port}/healthz`)).status, 200, host);
  }
});

import assert from "node:assert/strict";
import test from "node:test";
import { errorTable } from "../../src/contract/errors.ts";
import { permissionTable } from "../../src/contract/people/permissions.ts";
import { type Route, routeErrorCodes } from "../../src/contract/routes/route.ts";
import { routes } from "../../src/contract/routes/routes.ts";
import { makeTestApp, problemIn } from "./test-app.ts";

/** Values that fit the schemas of path parameters. */
const values: Readonly<Record<string, string>> = {
  sha256: "0".repeat(64),
  name: "model.onnx",
  project: "default",
  member: "group:vision",
};

function examplePath(route: Route): string {
  const [, kind = "job"] = /^\/(job|batch|token)/.exec(route.path) ?? [];
  const prefix = kind === "batch" ? "batch" : kind;
  return `/v1${route.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => values[name] ?? `${prefix}-${"0".repeat(26)}`)}`;
}

for (const [name, route] of Object.entries<Route>(routes)) {
  test(`${name} answers at ${route.method} ${route.path} with what the table says`, async (t) => {
    const { ask } = await makeTestApp(t);
    const answer = await ask(`${route.method} ${examplePath(route)}`);
    const declared = routeErrorCodes(route).map((code) => errorTable[code].status);
    assert.ok(
      [...Object.keys(route.replies).map(Number), ...declared].includes(answer.status),
      `${answer.status}`,
    );
    assert.notEqual(answer.status, 500);
    assert.equal(answer.headers.get("x-content-type-options"), "nosniff");
  });

  if (route.open) continue;
  const { scope } = permissionTable[route.action];
  test(`${name} needs a token${scope === null ? "" : ` with the scope ${scope}`}`, async (t) => {
    const { ask, tokenFor } = await makeTestApp(t);
    const call = `${route.method} ${examplePath(route)}`;
    assert.equal((await ask(call, { token: null })).status, 401);
    const other = scope === "models:write" ? "jobs:read" : "models:write";
    const answer = await ask(call, { token: await tokenFor(other) });
    const isRefused = answer.status === 401 || answer.status === 403;
    assert.equal(isRefused, scope !== null);
  });
}

test("a method that a resource has not is refused with those it has", async (t) => {
  const { ask } = await makeTestApp(t);
  const answer = await ask("PATCH /v1/jobs");
  assert.equal(answer.headers.get("allow"), "GET, HEAD");
  assert.equal((await problemIn(answer)).code, "method_not_allowed");
  const model = await ask(`GET /v1/models/${"0".repeat(64)}`);
  assert.equal(model.headers.get("allow"), "DELETE, HEAD, PUT");
  assert.equal((await ask("GET /v1/compress")).headers.get("allow"), "POST");
});

test("an unknown address is not found", async (t) => {
  const { ask } = await makeTestApp(t);
  for (const path of ["/", "/v1", "/v1/job", "/v2/jobs", "/v1/jobs/a/b/c/d", "/worker/v1/jobs"]) {
    assert.equal((await problemIn(await ask(`GET ${path}`))).code, "not_found", path);
  }
});

test("HEAD gives what GET gives without the body", async (t) => {
  const { ask } = await makeTestApp(t);
  const answer = await ask("HEAD /v1/targets");
  assert.equal(answer.status, 200);
  assert.equal(answer.headers.get("content-type"), "application/json");
  assert.equal(await answer.text(), "");
});

test("answers must not be kept by caches", async (t) => {
  const { ask } = await makeTestApp(t);
  assert.equal((await ask("GET /v1/jobs")).headers.get("cache-control"), "no-store");
});

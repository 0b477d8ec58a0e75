import assert from "node:assert/strict";
import { test } from "node:test";
import { isExpired, KubernetesError } from "../../src/kubernetes/kubernetes-error.ts";
import { observeSecrets } from "./observe-secrets.ts";
import { type Answer, answer, breakOff, connectStandIn, refusal } from "./stand-in-api-server.ts";

test("a watch that the server ends goes on from the last bookmark", async () => {
  const bookmark = { type: "BOOKMARK", object: { metadata: { resourceVersion: "9" } } };
  const { client, seen } = await connectStandIn(
    list("1"),
    watch([bookmark]),
    watch([added("a", "10")]),
    silent,
  );
  const { events, errors, untilEvent } = observeSecrets(client);
  await untilEvent("added a");
  assert.deepEqual(requestedVersions(seen).slice(0, 3), ["list", "watch 1", "watch 9"]);
  assert.deepEqual([events, errors], [["added a"], []]);
});

test("a watch that breaks within an event goes on before it", async () => {
  const cut = JSON.stringify(added("b", "3")).slice(0, 30);
  const broken = breakOff(`${JSON.stringify(added("a", "2"))}\n${cut}`);
  const { client, seen } = await connectStandIn(
    list("1"),
    broken,
    watch([added("b", "3")]),
    silent,
  );
  const { untilEvent, events } = observeSecrets(client);
  await untilEvent("added b");
  assert.deepEqual(requestedVersions(seen).slice(0, 3), ["list", "watch 1", "watch 2"]);
  assert.deepEqual(events, ["added a", "error", "added b"]);
});

for (const [fault, failing] of Object.entries({
  "an error within the watch": watch([
    { type: "ERROR", object: { kind: "Status", code: 500, message: "told" } },
  ]),
  "a watch that is refused": refusal(504, "Timeout"),
  "a line that is not an event": ((_, response) =>
    response.writeHead(200).end("<html>\n")) satisfies Answer,
})) {
  test(`after ${fault}, everything is listed anew`, async () => {
    const { client, seen } = await connectStandIn(list("1", "a"), failing, list("5", "b"), silent);
    const { reflector, events, untilEvent } = observeSecrets(client);
    await untilEvent("deleted a");
    assert.deepEqual(events, ["added a", "error", "added b", "deleted a"]);
    assert.equal(reflector.size, 1);
    assert.deepEqual(requestedVersions(seen).slice(0, 3), ["list", "watch 1", "list"]);
  });
}

test("a version that has expired, in a watch or between pages, is not an error", async () => {
  const gone = watch([{ type: "ERROR", object: { kind: "Status", code: 410, reason: "Expired" } }]);
  const firstPage = answer(200, {
    metadata: { resourceVersion: "5", continue: "more" },
    items: [object("b", "5")],
  });
  const answers = [
    list("1", "a"),
    gone,
    firstPage,
    refusal(410, "Expired"),
    list("7", "c"),
    silent,
  ];
  const { client } = await connectStandIn(...answers);
  const { errors, events, untilEvent } = observeSecrets(client);
  await untilEvent("deleted b");
  assert.deepEqual(events, ["added a", "added b", "added c", "deleted a", "deleted b"]);
  assert.deepEqual(errors, []);
});

test("a watch is refused for a while without a new list", async () => {
  const busy = refusal(429, "TooManyRequests", { "retry-after": "0" });
  const { client, seen } = await connectStandIn(
    list("1"),
    busy,
    busy,
    watch([added("a", "2")]),
    silent,
  );
  const { errors, untilEvent } = observeSecrets(client);
  await untilEvent("added a");
  assert.deepEqual(requestedVersions(seen).slice(0, 4), ["list", "watch 1", "watch 1", "watch 1"]);
  assert.ok(errors.every((error) => error instanceof KubernetesError && !isExpired(error)));
});

function object(name: string, resourceVersion: string): object {
  return {
    metadata: { name, uid: name, resourceVersion, creationTimestamp: "2026-01-01T00:00:00Z" },
  };
}

function added(name: string, resourceVersion: string): object {
  return { type: "ADDED", object: object(name, resourceVersion) };
}

function list(resourceVersion: string, ...names: string[]): Answer {
  return answer(200, {
    metadata: { resourceVersion },
    items: names.map((name) => object(name, resourceVersion)),
  });
}

/** A watch that the server ends after these events. */
function watch(events: readonly object[]): Answer {
  return (_, response) =>
    response.writeHead(200).end(events.map((event) => `${JSON.stringify(event)}\n`).join(""));
}

/** A watch in which nothing happens. */
function silent(...[, response]: Parameters<Answer>): void {
  response.writeHead(200).flushHeaders();
}

function requestedVersions(seen: readonly string[]): string[] {
  return seen.map((request) => {
    const query = new URL(request.split(" ")[1] ?? "", "http://stand-in").searchParams;
    return query.has("watch") ? `watch ${query.get("resourceVersion")}` : "list";
  });
}

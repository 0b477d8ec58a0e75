import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { type TestContext } from "node:test";
import { listenLocally } from "../support/listen-locally.ts";
import { createClient } from "../../src/client/create-client.ts";
import { routes } from "../../src/contract/routes/routes.ts";
import { ProblemError } from "../../src/client/problem-error.ts";
import { newId } from "../../src/contract/id.ts";
import { defaultRecipe } from "../../src/contract/jobs/resolve-recipe.ts";

type Answer = (request: IncomingMessage, response: ServerResponse, count: number) => void;

/** A server that answers as a failing network or service would; the real service is met in test/server. */
async function serve(t: TestContext, answer: Answer) {
  let count = 0;
  const server = createServer((request, response) => answer(request, response, ++count));
  const baseUrl = `${await listenLocally(t, server)}/v1`;
  const client = createClient({ routes, baseUrl, token: "secret" });
  return { client, count: () => count };
}

function fail(
  response: ServerResponse,
  status: number,
  code: string,
  headers: Record<string, string> = {},
): void {
  response.writeHead(status, { "content-type": "application/problem+json", ...headers });
  response.end(
    JSON.stringify({ type: "about:blank", title: "t", status, code, detail: "Details" }),
  );
}

function json(response: ServerResponse, value: unknown, status = 200): void {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(value));
}

const request = { model: { source: "https://models.example/m.onnx" }, target: "cpu" };

test("call() repeats a read after a passing failure", async (t) => {
  const { client, count } = await serve(t, (_, response, calls) =>
    calls < 3 ? fail(response, 503, "unavailable") : json(response, { targets: [] }),
  );
  assert.deepEqual(await client.call("listTargets", {}), { targets: [] });
  assert.equal(count(), 3);
});

test("call() repeats a read whose connection breaks", async (t) => {
  const { client } = await serve(t, (asked, response, calls) =>
    calls === 1 ? asked.socket.destroy() : json(response, { targets: [] }),
  );
  assert.deepEqual(await client.call("listTargets", {}), { targets: [] });
});

test("listPages() asks for page after page until the last", async (t) => {
  const asked: string[] = [];
  const { client } = await serve(t, ({ url = "" }, response, calls) => {
    asked.push(url);
    json(response, { jobs: [], nextCursor: calls < 3 ? `after-${calls}` : null });
  });
  const query = { target: "cpu", label: ["team"] };
  const pages = await Array.fromAsync(client.listPages("listJobSummaries", { query }));
  assert.deepEqual(
    pages.map(({ nextCursor }) => nextCursor),
    ["after-1", "after-2", null],
  );
  const filters = "/v1/jobs/summaries?target=cpu&label=team&limit=200";
  assert.deepEqual(asked, [filters, `${filters}&cursor=after-1`, `${filters}&cursor=after-2`]);
});

test("call() sends a submission once only", async (t) => {
  const { client, count } = await serve(t, (_, response) => fail(response, 503, "unavailable"));
  await assert.rejects(client.call("startCompression", { body: request }), ProblemError);
  assert.equal(count(), 1);
});

test("call() repeats a submission that has an Idempotency-Key", async (t) => {
  const keys: unknown[] = [];
  const { client } = await serve(t, (asked, response, calls) => {
    keys.push(asked.headers["idempotency-key"]);
    if (calls === 1) fail(response, 503, "unavailable");
    else json(response, jobDocument(newId("job", new Date()), "Pending"), 202);
  });
  await client.call("startCompression", { body: request, headers: { "idempotency-key": "k1" } });
  assert.deepEqual(keys, ["k1", "k1"]);
});

test("call() gives the service's problem with its fields", async (t) => {
  const { client } = await serve(t, (_, response) => fail(response, 404, "not_found"));
  await assert.rejects(
    client.call("getJob", { params: { id: newId("job", new Date()) } }),
    (error) => {
      assert.ok(error instanceof ProblemError);
      assert.equal(error.problem.code, "not_found");
      return true;
    },
  );
});

for (const [what, headers] of Object.entries({
  "an answer in chunks": {},
  "an answer in chunks, the last of its connection": { connection: "close" },
  "an answer of known length": { "content-length": "14" },
  "an answer of known length, the last of its connection": {
    connection: "close",
    "content-length": "14",
  },
})) {
  test(`call() repeats a read where ${what}, is cut off`, async (t) => {
    const { client } = await serve(t, (_, response, calls) => {
      if (calls > 1) return json(response, { targets: [] });
      response.writeHead(200, { "content-type": "application/json", ...headers });
      response.write('{"tar', () => response.destroy());
    });
    assert.deepEqual(await client.call("listTargets", {}), { targets: [] });
  });
}

test("call() gives up where the service asks to wait for long", async (t) => {
  const { client, count } = await serve(t, (_, response) =>
    fail(response, 429, "rate_limited", { "retry-after": "3600" }),
  );
  await assert.rejects(client.call("listTargets", {}), { retryAfter: 3600 });
  assert.equal(count(), 1);
});

test("followLogs() goes on behind the last line after broken connections", async (t) => {
  const line = (seq: number) => {
    const data = { seq, at: "2026-01-01T00:00:00.000Z", stream: "stdout", text: `line ${seq}` };
    return `id: ${seq}\nevent: log\ndata: ${JSON.stringify(data)}\n\n`;
  };
  const end = 'event: end\ndata: {"status":"Completed"}\n\n';
  const pieces: Record<string, string> = {
    "0": `${line(1)}: ping\n\n${line(2)}${line(3).slice(0, 40)}`,
    "2": line(3),
    "3": `${line(4)}${end}`,
  };
  const { client } = await serve(t, (asked, response, calls) => {
    const { searchParams } = new URL(asked.url ?? "", "http://127.0.0.1");
    response.writeHead(200, { "content-type": "text/event-stream" });
    // Cut off, ended as by a proxy, and complete.
    const piece = pieces[searchParams.get("after") ?? ""] ?? "";
    response.write(piece, () => (calls === 1 ? response.destroy() : response.end()));
  });
  const lines = client.followLogs(newId("job", new Date()));
  const seen: string[] = [];
  let next = await lines.next();
  for (; next.done !== true; next = await lines.next()) seen.push(next.value.text);
  assert.deepEqual(seen, ["line 1", "line 2", "line 3", "line 4"]);
  assert.equal(next.value, "Completed");
});

test("followLogs() goes on after answers of a proxy that does not reach the service", async (t) => {
  const { client, count } = await serve(t, (_, response, calls) => {
    if (calls === 1) response.writeHead(502).end("<html>");
    else if (calls === 2) response.writeHead(503, { "retry-after": "3600" }).end("<html>");
    else response.end('event: end\ndata: {"status":"Completed"}\n\n');
  });
  const lines = client.followLogs(newId("job", new Date()));
  assert.deepEqual(await lines.next(), { done: true, value: "Completed" });
  assert.equal(count(), 3);
});

test("downloadArtifact() goes on behind the last byte after a broken connection", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "download-"));
  t.after(() => rm(folder, { recursive: true }));
  const content = randomBytes(300_000);
  const ranges: unknown[] = [];
  const { client } = await serve(t, (asked, response, calls) => {
    ranges.push(asked.headers["if-range"]);
    const start = Number(/^bytes=(\d+)-$/.exec(asked.headers.range ?? "")?.[1] ?? 0);
    const rest = content.subarray(start);
    response.writeHead(start > 0 ? 206 : 200, { etag: '"tag"', "content-length": rest.length });
    if (calls === 1) response.write(rest.subarray(0, 100_000), () => response.destroy());
    else response.end(rest);
  });
  const file = join(folder, "model.onnx");
  await client.downloadArtifact(newId("job", new Date()), "model.onnx", { file });
  assert.ok(content.equals(await readFile(file)));
  assert.deepEqual(await readdir(folder), ["model.onnx"]);
  assert.equal(ranges.length, 2);
});

test("uploadModel() sends a file only where it is missing", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "upload-"));
  t.after(() => rm(folder, { recursive: true }));
  const file = join(folder, "model.onnx");
  await writeFile(file, Buffer.alloc(3_000_000, 7));
  let stored = 0;
  const { client } = await serve(t, (asked, response) => {
    if (asked.method === "HEAD") {
      response.writeHead(stored > 0 ? 200 : 404);
      response.end();
      return;
    }
    asked.on("data", (chunk: Buffer) => {
      stored += chunk.length;
    });
    asked.on("end", () => json(response, {}));
  });
  const first = await client.uploadModel(file);
  assert.equal(first.sent, true);
  assert.equal(stored, 3_000_000);
  assert.deepEqual(await client.uploadModel(file), { ...first, sent: false });
});

for (const [what, keptBytes, refuses, starts] of [
  ["goes on behind what the service keeps", 1_000_000, false, [0, 1_000_000]],
  ["sends the last byte of what arrived as a whole", 3_000_000, false, [0, 2_999_999]],
  ["starts over where the service keeps something else", 1_000_000, true, [0, 1_000_000, 0]],
] as const) {
  test(`uploadModel() ${what} after a broken connection`, async (t) => {
    const folder = await mkdtemp(join(tmpdir(), "upload-"));
    t.after(() => rm(folder, { recursive: true }));
    const file = join(folder, "model.onnx");
    const content = randomBytes(3_000_000);
    await writeFile(file, content);
    let puts = 0;
    const { client } = await serve(t, (asked, response) => {
      if (asked.method === "HEAD") {
        response.writeHead(404, puts > 0 ? { "upload-offset": keptBytes } : {}).end();
        return;
      }
      puts++;
      const start = Number(
        /^bytes (\d+)-2999999\/3000000$/.exec(asked.headers["content-range"] ?? "")?.[1] ?? 0,
      );
      const received: Buffer[] = [];
      asked.on("data", (chunk: Buffer) => {
        received.push(chunk);
        if (puts === 1) asked.socket.destroy();
      });
      asked.on("end", () => {
        assert.ok(content.subarray(start).equals(Buffer.concat(received)));
        if (refuses && start > 0) fail(response, 422, "model_checksum_mismatch");
        else json(response, {});
      });
    });
    const seen: number[] = [];
    const { sent } = await client.uploadModel(file, { onStart: (offset) => seen.push(offset) });
    assert.equal(sent, true);
    assert.deepEqual(seen, starts);
  });
}

test("uploadModel() does not send again what finds no room", async (t) => {
  const { client, count } = await serve(t, (asked, response) => {
    if (asked.method === "HEAD") response.writeHead(404).end();
    else asked.resume().on("end", () => fail(response, 507, "storage_full"));
  });
  await assert.rejects(client.uploadModel(import.meta.filename), ProblemError);
  assert.equal(count(), 2);
});

function jobDocument(id: string, status: string) {
  const at = "2026-01-01T00:00:00.000Z";
  return {
    id,
    kind: "compress",
    name: "job",
    status,
    statusReason: "reason",
    statusMessage: "message",
    batchId: null,
    model: { source: request.model.source, name: "m", bytes: null, actualSha256: null },
    target: "cpu",
    recipe: defaultRecipe,
    gateLimits: {},
    labels: {},
    createdAt: at,
    updatedAt: at,
    startedAt: null,
    finishedAt: null,
    transitions: [],
    telemetry: { progress: { fraction: 0 }, warnings: [] },
    artifacts: [],
    gates: [],
    error: null,
  };
}

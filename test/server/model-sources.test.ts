import assert from "node:assert/strict";
import { createServer } from "node:http";
import test, { type TestContext } from "node:test";
import { job } from "../../src/contract/jobs/job.ts";
import { locatedSource } from "../../src/contract/worker-protocol/transfers.ts";
import { limits } from "../../src/contract/limits.ts";
import { commit, hubToken, startHubStandIn } from "../storage/hub-stand-in.ts";
import { listenLocally } from "../support/listen-locally.ts";
import { beginTestWorker, makeTestApp, problemIn } from "./test-app.ts";

const secretAccessKey = "secret-of-the-bucket";
const repository = "hf://acme/private";

async function makeApp(t: TestContext) {
  const { endpoint } = await startHubStandIn(t, { "model.onnx": Buffer.from("model") });
  const access = { accessKeyId: "key", secretAccessKey, endpoint: "https://s3.test" };
  return makeTestApp(t, {
    sources: {
      hf: [{ endpoint, token: hubToken, projects: ["default"] }],
      s3: [
        { ...access, bucket: "models", projects: ["default"] },
        { ...access, bucket: "of-others", projects: ["other"] },
      ],
    },
  });
}

test("a job records the commit of its model and its data, and no secret is shown", async (t) => {
  const app = await makeApp(t);
  const body = {
    model: { source: `${repository}@main/model.onnx` },
    target: "cpu",
    recipe: { evaluation: { data: `${repository}/model.onnx` } },
  };
  const answer = await app.ask("POST /v1/compress", { body });
  const text = await answer.text();
  assert.equal(answer.status, 202, text);
  const { id, model, recipe } = job.parse(JSON.parse(text));
  const pinned = `${repository}@${commit}/model.onnx`;
  assert.equal(model.source, pinned);
  assert.equal(recipe.evaluation.data, pinned);
  const shown = await (await app.ask(`GET /v1/jobs/${id}`)).text();
  for (const each of [text, shown, ...app.logged]) assert.ok(!each.includes(hubToken));
});

for (const [source, code] of [
  [`${repository}/absent.onnx`, "model_not_found"],
  ["s3://of-others/model.onnx", "model_source_refused"],
  ["gs://models/model.onnx", "model_source_refused"],
] as const) {
  test(`${source} is refused by its field`, async (t) => {
    const app = await makeApp(t);
    const body = { model: { source }, target: "cpu" };
    const refusal = await problemIn(await app.ask("POST /v1/compress", { body }));
    assert.equal(refusal.code, code);
    assert.equal(refusal.errors?.[0]?.pointer, "/model/source");
  });
}

for (const source of ["s3://models", "s3:///key", "hf://owner", "gs://B/x", "ftp://a/b"]) {
  test(`${source} is not a source`, async (t) => {
    const app = await makeApp(t);
    const body = { model: { source }, target: "cpu" };
    const { code, errors } = await problemIn(await app.ask("POST /v1/compress", { body }));
    assert.equal(code, "validation_failed");
    assert.match(errors?.[0]?.message ?? "", /must be https:\/\/.*s3:\/\/BUCKET\/KEY/);
  });
}

test("a worker is assigned where its own model and its external data are, without the key", async (t) => {
  const app = await makeApp(t);
  const source = "s3://models/nets/detector.onnx";
  const body = { model: { source }, target: "cpu" };
  const { id } = job.parse(await (await app.ask("POST /v1/compress", { body })).json());
  const { secret: token } = await beginTestWorker(app, id);
  const ask = (asked: string) =>
    app.ask(`POST /worker/v1/jobs/${id}/sources`, { token, body: { source: asked } });
  const text = await (await ask(source)).text();
  const { url, headers, isTrusted } = locatedSource.parse(JSON.parse(text));
  assert.match(url, /^https:\/\/s3\.test\/models\/nets\/detector\.onnx\?X-Amz-Expires=900&/);
  assert.deepEqual([headers, isTrusted], [{}, true]);
  assert.ok(!text.includes(secretAccessKey));
  assert.equal((await ask("s3://models/nets/parts/detector.data")).status, 200);
  for (const [foreign, code] of [
    ["s3://models/another.onnx", "not_found"],
    ["s3://of-others/nets/detector.data", "not_found"],
    ["s3://models/nets/../another.onnx", "model_source_refused"],
  ] as const) {
    assert.equal((await problemIn(await ask(foreign))).code, code);
  }
});

test("a worker without a network gets the content of its own sources, and no other", async (t) => {
  const requests: string[] = [];
  const origin = await listenLocally(
    t,
    createServer(({ url = "", headers }, response) => {
      const { range = "whole", "if-range": version, authorization } = headers;
      requests.push([url, range, version, authorization].filter(Boolean).join(" "));
      if (url === "/moved/net.onnx?key=k") response.writeHead(302, { location: "/net.onnx" }).end();
      else if (url === "/busy.onnx") response.writeHead(503).end();
      else if (url === "/forbidden.onnx") response.writeHead(403).end();
      else if (range === "whole")
        response.writeHead(200, { etag: '"1"', "x-other": "1" }).end("net");
      else response.writeHead(206, { "content-range": "bytes 1-2/3" }).end("et");
    }),
  );
  const app = await makeTestApp(t, { allowPrivateAddresses: true });
  const begin = async (source: string) => {
    const body = { model: { source }, target: "cpu" };
    const { id } = job.parse(await (await app.ask("POST /v1/compress", { body })).json());
    const { secret: token } = await beginTestWorker(app, id);
    return (asked: string, headers: Record<string, string> = {}, worker: string | null = token) =>
      app.ask(`POST /worker/v1/jobs/${id}/source`, {
        token: worker,
        headers,
        body: { source: asked },
      });
  };
  const source = `${origin}/moved/net.onnx?key=k`;
  const ask = await begin(source);
  const whole = await ask(source, { "x-secret": "1" });
  assert.deepEqual(
    [whole.status, whole.headers.get("etag"), await whole.text()],
    [200, '"1"', "net"],
  );
  assert.equal(whole.headers.get("x-other"), null);
  const rest = await ask(`${origin}/moved/parts/a%20b?key=k`, {
    range: "bytes=1-",
    "if-range": '"1"',
  });
  assert.equal(rest.headers.get("content-range"), "bytes 1-2/3");
  assert.deepEqual([rest.status, await rest.text()], [206, "et"]);
  assert.deepEqual(requests, [
    "/moved/net.onnx?key=k whole",
    "/net.onnx whole",
    '/moved/parts/a%20b?key=k bytes=1- "1"',
  ]);
  for (const foreign of [
    `${origin}/net.onnx?key=k`,
    `${origin}/moved/parts/../../net.onnx?key=k`,
    `${origin}/moved/parts/%2e%2e/%2e%2e/net.onnx?key=k`,
    `${origin}/moved/a?key=other`,
    `${origin.replace("//", "//user@")}/moved/a?key=k`,
    `https${origin.slice(4)}/moved/a?key=k`,
    "http://169.254.169.254/moved/a?key=k",
  ]) {
    assert.equal((await problemIn(await ask(foreign))).code, "not_found", foreign);
  }
  assert.equal((await ask(source, {}, app.admin)).status, 401);
  const busy = await begin(`${origin}/busy.onnx`);
  const { code, detail } = await problemIn(await busy(`${origin}/busy.onnx`));
  assert.deepEqual([code, detail], ["unavailable", "the host answered 503"]);
  const forbidden = await begin(`${origin}/forbidden.onnx`);
  const refusal = await problemIn(await forbidden(`${origin}/forbidden.onnx`));
  assert.equal(refusal.code, "model_fetch_failed");
});

test("a source that never ends is sent no longer than its worker's attempt", async (t) => {
  const left = Promise.withResolvers<void>();
  const origin = await listenLocally(
    t,
    createServer((_request, response) => {
      response.once("close", left.resolve).write("drip");
    }),
  );
  const app = await makeTestApp(t, { allowPrivateAddresses: true });
  const source = `${origin}/net.onnx`;
  const body = { model: { source }, target: "cpu" };
  const { id } = job.parse(await (await app.ask("POST /v1/compress", { body })).json());
  const { secret: token } = await beginTestWorker(app, id);
  t.mock.timers.enable({ apis: ["setInterval"] });
  const answer = await app.ask(`POST /worker/v1/jobs/${id}/source`, { token, body: { source } });
  const reader = answer.body?.getReader();
  assert.equal(Buffer.from((await reader?.read())?.value ?? []).toString(), "drip");
  await app.records.attempts.end(id, 1, { error: null, lines: [] });
  const rest = reader?.read().then(
    () => "ended",
    () => "broken off",
  );
  t.mock.timers.tick(limits.accessCheckSeconds * 1000);
  assert.equal(await rest, "broken off");
  await left.promise;
});

test("the content of a source at a private address is refused", async (t) => {
  const app = await makeTestApp(t, { allowPrivateAddresses: false });
  const source = "https://localhost/net.onnx";
  const body = { model: { source }, target: "cpu" };
  const { id } = job.parse(await (await app.ask("POST /v1/compress", { body })).json());
  const { secret: token } = await beginTestWorker(app, id);
  const answer = await app.ask(`POST /worker/v1/jobs/${id}/source`, { token, body: { source } });
  assert.equal((await problemIn(answer)).code, "model_source_refused");
});

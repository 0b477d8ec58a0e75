import assert from "node:assert/strict";
import test from "node:test";
import { gunzipSync } from "node:zlib";
import { Hono } from "hono";
import { compressJson } from "../../src/server/http/compress-json.ts";

const long = { jobs: Array.from({ length: 500 }, (_, index) => ({ name: `job-${index}` })) };

function makeApp(): Hono {
  const app = new Hono();
  compressJson(app);
  app.get("/long", () => Response.json(long, { headers: { etag: '"1"' } }));
  app.get("/short", () => Response.json({ id: 1 }, { status: 202 }));
  app.get("/file", () => new Response("x".repeat(5000)));
  return app;
}

async function ask(path: string, accepted: string) {
  return makeApp().request(path, { headers: { "accept-encoding": accepted } });
}

test("long JSON answers are compressed for those who take gzip", async () => {
  for (const accepted of ["gzip", "br, gzip;q=0.5, *;q=0"]) {
    const answer = await ask("/long", accepted);
    assert.equal(answer.headers.get("content-encoding"), "gzip");
    assert.equal(answer.headers.get("etag"), '"1"');
    const body = new Uint8Array(await answer.arrayBuffer());
    assert.ok(body.length < 3000);
    assert.deepEqual(JSON.parse(gunzipSync(body).toString()), long);
  }
});

test("short answers, files and answers for others stay as they are", async () => {
  for (const accepted of ["", "br", "gzip;q=0"]) {
    const answer = await ask("/long", accepted);
    assert.equal(answer.headers.get("content-encoding"), null, accepted);
    assert.equal(answer.headers.get("vary"), "accept-encoding");
    assert.deepEqual(await answer.json(), long);
  }
  const short = await ask("/short", "gzip");
  assert.equal(short.status, 202);
  assert.deepEqual([short.headers.get("content-encoding"), await short.json()], [null, { id: 1 }]);
  assert.equal((await (await ask("/file", "gzip")).text()).length, 5000);
});

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import {
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  realpath,
  rm,
  symlink,
  writeFile,
} from "node:fs/promises";
import { createServer, type RequestListener } from "node:http";
import { tmpdir } from "node:os";
import path from "node:path";
import { Readable } from "node:stream";
import { test, type TestContext } from "node:test";
import { pathToFileURL } from "node:url";
import { createDirectoryBlobStore } from "../../src/storage/directory-blob-store.ts";
import { fetchModel, type FetchLimits } from "../../src/storage/fetch-model.ts";
import type { SlowestPace } from "../../src/storage/download.ts";
import { listenLocally } from "../support/listen-locally.ts";

async function makeFetch(
  t: TestContext,
  overrides: Partial<FetchLimits> = {},
  slowest: SlowestPace = { bytes: 0, seconds: 60 },
) {
  const folder = await realpath(await mkdtemp(path.join(tmpdir(), "fetch-")));
  t.after(async () => rm(folder, { recursive: true }));
  const root = path.join(folder, "models");
  const work = path.join(folder, "work");
  await Promise.all([mkdir(root), mkdir(work)]);
  const blobs = await createDirectoryBlobStore(path.join(folder, "store"));
  const abort = new AbortController();
  const limits = {
    maxModelBytes: 1_000_000,
    allowedRoots: [root],
    allowPrivateAddresses: true,
    ...overrides,
  };
  const progress: (readonly [number, number | undefined])[] = [];
  const fetchFrom = async (source: string, sha256?: string) =>
    fetchModel(
      { source, sha256 },
      {
        blobs,
        path: path.join(work, "model.onnx"),
        limits,
        signal: abort.signal,
        slowest,
        locateSource: async (url) => ({ url, headers: {}, isTrusted: false }),
        onProgress: (...step) => progress.push(step),
      },
    );
  return { fetchFrom, folder, root, work, blobs, abort, progress };
}

function serve(t: TestContext, listener: RequestListener): Promise<string> {
  return listenLocally(t, createServer(listener));
}

function sha256Of(content: string | Buffer): string {
  return createHash("sha256").update(content).digest("hex");
}

test("fetchModel() uses a local file in place", async (t) => {
  const { fetchFrom, root, progress } = await makeFetch(t);
  const file = path.join(root, "net 1.onnx");
  await writeFile(file, "content");
  const fetched = await fetchFrom(pathToFileURL(file).href, sha256Of("content"));
  assert.deepEqual(fetched, { path: file, bytes: 7, sha256: sha256Of("content") });
  assert.deepEqual(progress, [[7, 7]]);
});

test("fetchModel() refuses local files outside the allowed folders, existing or not", async (t) => {
  const { fetchFrom, folder, root } = await makeFetch(t);
  await writeFile(path.join(folder, "secret.onnx"), "x");
  await symlink(path.join(folder, "secret.onnx"), path.join(root, "link.onnx"));
  await mkdir(path.join(folder, "models-2"));
  for (const name of [
    "secret.onnx",
    "absent.onnx",
    "models/../secret.onnx",
    "models-2/a.onnx",
    "models/link.onnx",
  ]) {
    await assert.rejects(
      fetchFrom(`file://${folder}/${name}`),
      { code: "model_source_refused" },
      name,
    );
  }
  for (const url of [
    "file:///etc/passwd",
    "file://host/etc/passwd",
    `file://${root}/..%2fsecret.onnx`,
  ]) {
    await assert.rejects(fetchFrom(url), { code: "model_source_refused" }, url);
  }
  await assert.rejects(fetchFrom(pathToFileURL(root).href), { code: "model_source_refused" });
});

test("fetchModel() says that a local file does not exist, is too large, or has another hash", async (t) => {
  const { fetchFrom, root } = await makeFetch(t, { maxModelBytes: 4 });
  await assert.rejects(fetchFrom(`file://${root}/absent.onnx`), { code: "model_not_found" });
  await writeFile(path.join(root, "large.onnx"), "12345");
  await assert.rejects(fetchFrom(`file://${root}/large.onnx`), {
    code: "model_too_large",
    message: "The file has 5 bytes; at most 4 are allowed",
  });
  await writeFile(path.join(root, "small.onnx"), "1234");
  await assert.rejects(fetchFrom(`file://${root}/small.onnx`, sha256Of("x")), {
    code: "model_checksum_mismatch",
  });
});

test("fetchModel() makes an uploaded file available and names one that was never uploaded", async (t) => {
  const { fetchFrom, blobs, work } = await makeFetch(t);
  const { sha256 } = await blobs.write(Readable.from([Buffer.from("content")]));
  const fetched = await fetchFrom(`upload:sha256:${sha256}`);
  assert.deepEqual(fetched, { path: path.join(work, "model.onnx"), bytes: 7, sha256 });
  assert.equal(await readFile(fetched.path, "utf8"), "content");
  await assert.rejects(fetchFrom(`upload:sha256:${sha256Of("other")}`), {
    code: "model_not_found",
  });
  await rm(fetched.path);
  await assert.rejects(fetchFrom(`upload:sha256:${sha256}`, sha256Of("other")), {
    code: "model_checksum_mismatch",
  });
});

test("fetchModel() downloads a file, following redirects", async (t) => {
  const { fetchFrom, work, progress } = await makeFetch(t);
  const origin = await serve(t, (request, response) => {
    if (request.url === "/a") response.writeHead(302, { location: "/b?x=1" }).end();
    else if (request.url === "/b?x=1") response.writeHead(307, { location: "model.onnx" }).end();
    else response.writeHead(200, { "content-length": 7 }).end("content");
  });
  const fetched = await fetchFrom(`${origin}/a`, sha256Of("content"));
  assert.deepEqual(fetched, {
    path: path.join(work, "model.onnx"),
    bytes: 7,
    sha256: sha256Of("content"),
  });
  assert.equal(await readFile(fetched.path, "utf8"), "content");
  assert.deepEqual(progress.at(-1), [7, 7]);
});

test("fetchModel() resumes a download whose connection is cut, without a byte lost or doubled", async (t) => {
  const { fetchFrom, work } = await makeFetch(t);
  const content = Buffer.from(Array.from({ length: 300_000 }, (_, i) => i % 251));
  const ranges: (string | undefined)[] = [];
  const origin = await serve(t, (request, response) => {
    const { range } = request.headers;
    ranges.push(range);
    const start = Number(/bytes=(\d+)-/.exec(range ?? "")?.[1] ?? 0);
    response.writeHead(range ? 206 : 200, {
      etag: '"v1"',
      "content-length": content.length - start,
      ...(range && { "content-range": `bytes ${start}-${content.length - 1}/${content.length}` }),
    });
    const part = content.subarray(start, start + 120_000);
    response.write(part, () => {
      if (start + part.length === content.length) response.end();
      // A connection that is cut at once takes along what its reader has not read.
      else setTimeout(() => response.destroy(), 100);
    });
  });
  const fetched = await fetchFrom(origin);
  assert.equal(fetched.sha256, sha256Of(content));
  assert.deepEqual(await readFile(path.join(work, "model.onnx")), content);
  assert.equal(ranges[0], undefined);
  assert(ranges.length > 1);
});

test("fetchModel() asks on where a host sends less than the rest at once", async (t) => {
  const { fetchFrom } = await makeFetch(t);
  const content = Buffer.from(Array.from({ length: 1000 }, (_, i) => i % 251));
  const origin = await serve(t, (request, response) => {
    const start = Number(/bytes=(\d+)-/.exec(request.headers.range ?? "")?.[1] ?? 0);
    const part = content.subarray(start, start + 300);
    const headers = { etag: '"v1"', "content-length": part.length };
    if (start > 0) {
      const range = `bytes ${start}-${start + part.length - 1}/${content.length}`;
      response.writeHead(206, { ...headers, "content-range": range }).end(part);
      return;
    }
    response.writeHead(200, { ...headers, "content-length": content.length });
    // A connection that is cut at once takes along what its reader has not read.
    response.write(part, () => setTimeout(() => response.destroy(), 100));
  });
  assert.equal((await fetchFrom(origin)).sha256, sha256Of(content));
});

test("fetchModel() starts over when the file changed while its download was cut", async (t) => {
  const { fetchFrom } = await makeFetch(t);
  let calls = 0;
  const origin = await serve(t, (_, response) => {
    calls++;
    if (calls === 1) {
      response.writeHead(200, { etag: '"v1"', "content-length": 10 });
      response.write("old", () => response.destroy());
    } else response.writeHead(200, { etag: '"v2"', "content-length": 3 }).end("new");
  });
  assert.equal((await fetchFrom(origin)).sha256, sha256Of("new"));
});

const failures: [name: string, code: string, listener: RequestListener][] = [
  ["an answer 404", "model_not_found", (_, response) => response.writeHead(404).end()],
  ["an answer 403", "model_fetch_failed", (_, response) => response.writeHead(403).end()],
  [
    "redirects in a circle",
    "model_fetch_failed",
    (_, response) => response.writeHead(302, { location: "/" }).end(),
  ],
  [
    "a redirect to a file",
    "model_source_refused",
    (_, r) => r.writeHead(302, { location: "file:///etc/passwd" }).end(),
  ],
  [
    "a length above the limit",
    "model_too_large",
    (_, r) => r.writeHead(200, { "content-length": 2e6 }).write("x"),
  ],
  [
    "more bytes than the limit",
    "model_too_large",
    (_, response) => response.end(Buffer.alloc(1_100_000)),
  ],
  ["a host that always cuts", "model_fetch_failed", (_, response) => response.destroy()],
];
for (const [name, code, listener] of failures) {
  test(`fetchModel() ends with ${code} and leaves no file on ${name}`, async (t) => {
    const { fetchFrom, work } = await makeFetch(t);
    const origin = await serve(t, listener);
    await assert.rejects(fetchFrom(`${origin}/?secret=1`), (error: Error & { code: string }) => {
      assert.equal(error.code, code, error.message);
      assert.doesNotMatch(error.message, /secret/);
      return true;
    });
    assert.deepEqual(await readdir(work), []);
  });
}

test("fetchModel() stops at once when aborted and leaves no file", async (t) => {
  const { fetchFrom, work, abort } = await makeFetch(t);
  const origin = await serve(t, (_, response) => {
    response.writeHead(200, { "content-length": 10 });
    response.write("begin", () => abort.abort());
  });
  await assert.rejects(fetchFrom(origin), { name: "AbortError" });
  assert.deepEqual(await readdir(work), []);
});

test("fetchModel() refuses what is not on the public internet, unless it is allowed", async (t) => {
  const { fetchFrom, work } = await makeFetch(t, { allowPrivateAddresses: false });
  const urls = [
    "http://example.com/m",
    "https://127.0.0.1/m",
    "https://2130706433/m",
    "https://0x7f.1/m",
    "https://[::1]/m",
    "https://[::ffff:10.0.0.1]/m",
    "https://169.254.169.254/latest/meta-data",
    "https://localhost/m",
    "https://user:password@example.com/m",
  ];
  for (const url of urls)
    await assert.rejects(fetchFrom(url), { code: "model_source_refused" }, url);
  assert.deepEqual(await readdir(work), []);
});

test("fetchModel() gives up a host that drips, however long it could go on", async (t) => {
  const url = await serve(t, (_request, response) => {
    const drip = setInterval(() => response.write("x"), 20);
    response.once("close", () => clearInterval(drip));
  });
  const { fetchFrom, work } = await makeFetch(t, {}, { bytes: 1000, seconds: 1 });
  await assert.rejects(fetchFrom(`${url}/model.onnx?secret=1`), {
    code: "model_source_slow",
    message: /^\d+ bytes of "http:\S+\/model.onnx" arrived within 1 s; the least is 1/,
  });
  assert.deepEqual(await readdir(work), []);
});

test("fetchModel() gives up a host that keeps each connection waiting", async (t) => {
  const url = await serve(t, () => {});
  const { fetchFrom } = await makeFetch(t, {}, { bytes: 1, seconds: 1 });
  await assert.rejects(fetchFrom(`${url}/model.onnx`), { code: "model_source_slow" });
});

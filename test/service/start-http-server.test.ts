import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import test, { type TestContext } from "node:test";
import { defaultConnectionLimits } from "../../src/contract/connection-limits.ts";
import { ServiceError } from "../../src/contract/errors.ts";
import { readBoundedBody } from "../../src/server/http/read-request.ts";
import { startHttpServer } from "../../src/service/http-server/start-http-server.ts";

/** A second in place of each time that a client is given. */
const short = {
  ...defaultConnectionLimits,
  headersSeconds: 1,
  bodyWindowSeconds: 1,
  readerStallSeconds: 1,
  lingerSeconds: 1,
};

async function answer(request: Request): Promise<Response> {
  const { pathname } = new URL(request.url);
  if (pathname === "/healthz") return new Response("ok\n");
  if (pathname === "/refused") return new Response("no\n", { status: 401 });
  try {
    const body = await readBoundedBody(request, 1 << 20);
    return new Response(`${body.length}\n`);
  } catch (error) {
    return new Response(`${error instanceof ServiceError && error.code}\n`, { status: 413 });
  }
}

async function startServer(
  t: TestContext,
  limits: Partial<typeof short> = {},
  respond: typeof answer = answer,
) {
  const server = await startHttpServer(
    respond,
    { host: "127.0.0.1", port: 0 },
    { ...short, ...limits },
  );
  t.after(() => server[Symbol.asyncDispose]());
  const port = Number(new URL(server.url).port);
  const open = async (text: string, localAddress = "127.0.0.1"): Promise<Socket> => {
    const options = { port, host: "127.0.0.1", localAddress };
    const socket = connect(options).on("error", () => {});
    t.after(() => socket.destroy());
    await once(socket, "connect");
    socket.write(text);
    return socket;
  };
  return { url: server.url, open };
}

async function readToEnd(socket: Socket): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of socket) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

const halfOpen = {
  "nothing at all": "",
  "half a header": "GET /healthz HTTP/1.1\r\nHost: serv",
  "half a body": "POST / HTTP/1.1\r\nHost: service\r\nContent-Length: 100\r\n\r\nhalf",
};

for (const [name, text] of Object.entries(halfOpen)) {
  test(`1,000 clients that send ${name} are gone soon, and others are answered meanwhile`, async (t) => {
    const { url, open } = await startServer(t);
    const sockets = await Promise.all(Array.from({ length: 1000 }, async () => open(text)));
    const state = { isOver: false };
    const closed = Promise.all(
      sockets.map(async (socket) => {
        socket.resume();
        // Some end by a reset, and on a slow machine some have ended already.
        if (!socket.closed) await new Promise((resolve) => socket.once("close", resolve));
      }),
    ).then(() => (state.isOver = true));
    while (!state.isOver) assert.equal((await fetch(`${url}/healthz`)).status, 200);
    await closed;
  });
}

test("a body that drips is not waited for", async (t) => {
  const { open } = await startServer(t);
  const socket = await open("POST / HTTP/1.1\r\nHost: service\r\nContent-Length: 10000\r\n\r\n");
  const timer = setInterval(() => socket.write("x"), 100);
  t.after(() => clearInterval(timer));
  let answer = "";
  socket.on("data", (chunk) => (answer += String(chunk)));
  // By a reset, where a drop comes as it is closed.
  if (!socket.closed) await new Promise((resolve) => socket.once("close", resolve));
  assert.equal(answer, "");
});

test("a long upload that moves on is taken whole", async (t) => {
  const { open } = await startServer(t, { bodyWindowSeconds: 2 });
  const parts = 12;
  const head = `POST / HTTP/1.1\r\nHost: service\r\nConnection: close\r\nContent-Length: ${parts * 3000}\r\n\r\n`;
  const socket = await open(head);
  let sent = 0;
  const timer = setInterval(() => {
    socket.write(Buffer.alloc(3000));
    if (++sent === parts) clearInterval(timer);
  }, 250);
  t.after(() => clearInterval(timer));
  assert.match(await readToEnd(socket), /\r\n36000\n/);
});

test("a client that takes nothing of its answer is let go", async (t) => {
  const { promise: given, resolve: give } = Promise.withResolvers<void>();
  const body = new ReadableStream<Uint8Array>(
    { pull: (controller) => controller.enqueue(new Uint8Array(65_536)), cancel: () => give() },
    { highWaterMark: 0 },
  );
  const { open } = await startServer(t, {}, async () => new Response(body));
  const socket = await open("GET / HTTP/1.1\r\nHost: service\r\n\r\n");
  socket.pause();
  await given;
});

test("a client among too many others is answered, and the longest idle one makes room", async (t) => {
  const { url, open } = await startServer(t, { connections: 20, headersSeconds: 60 });
  const sockets = await Promise.all(Array.from({ length: 20 }, async () => open("GET /")));
  const closed = Promise.race(sockets.map(async (socket) => once(socket, "close")));
  assert.equal((await fetch(`${url}/healthz`)).status, 200);
  await closed;
  assert.ok(sockets.filter((socket) => socket.destroyed || socket.closed).length < 3);
});

test("an address with more than its share makes room for another, also while it is answered", async (t) => {
  const limits = { connections: 20, connectionsPerAddress: 15, headersSeconds: 60 };
  const { promise: never } = Promise.withResolvers<Response>();
  const { open } = await startServer(t, limits, async (request) =>
    request.url.endsWith("/healthz") ? new Response("ok\n") : never,
  );
  const get = "GET / HTTP/1.1\r\nHost: service\r\n\r\n";
  const crowd = await Promise.all(Array.from({ length: 16 }, async () => open(get)));
  await Promise.all(Array.from({ length: 4 }, async () => open(get, "127.0.0.2")));
  const closed = Promise.race(crowd.map(async (socket) => once(socket, "close")));
  const other = await open("GET /healthz HTTP/1.1\r\nHost: service\r\n\r\n", "127.0.0.3");
  await once(other, "data");
  await closed;
});

for (const path of ["/refused", "/too-large"]) {
  test(`a client that sends its whole body first reads the early answer of ${path}`, async (t) => {
    const { open } = await startServer(t, { lingerSeconds: 30, bodyWindowSeconds: 30 });
    const body = Buffer.alloc(32 << 20);
    const head = `PUT ${path} HTTP/1.1\r\nHost: service\r\nConnection: close\r\n`;
    const socket = await open(`${head}Content-Length: ${body.length}\r\n\r\n`);
    socket.pause();
    await new Promise<void>((resolve, reject) => {
      socket.once("close", () => reject(new Error("The connection broke before the answer")));
      for (let at = 0; at < body.length; at += 1 << 20) {
        socket.write(body.subarray(at, at + (1 << 20)), () => {
          if (at + (1 << 20) === body.length) resolve();
        });
      }
    });
    socket.removeAllListeners("close");
    assert.match(await readToEnd(socket), /^HTTP\/1\.1 4(01|13) /);
  });
}

test("the rest of a body is read for a bounded while after its answer", async (t) => {
  const { open } = await startServer(t, { bodyWindowSeconds: 60 });
  const socket = await open(
    "PUT /refused HTTP/1.1\r\nHost: service\r\nContent-Length: 1000000\r\n\r\n",
  );
  assert.match(await readToEnd(socket), /^HTTP\/1\.1 401 /);
});

test("the rest of what a worker sends too much is not read", { timeout: 30_000 }, async (t) => {
  const { open } = await startServer(t, { lingerSeconds: 3600 }, async () => {
    return new Response("slower\n", { status: 429 });
  });
  const socket = await open(
    "PUT /worker/v1/jobs/a HTTP/1.1\r\nHost: service\r\nContent-Length: 1000000\r\n\r\n",
  );
  assert.match(await readToEnd(socket), /^HTTP\/1\.1 429 /);
});

test("a connection goes on after an answer that came before the body", async (t) => {
  const { open } = await startServer(t);
  const socket = await open("PUT /refused HTTP/1.1\r\nHost: service\r\nContent-Length: 5\r\n\r\n");
  await once(socket, "data");
  socket.write("12345GET /healthz HTTP/1.1\r\nHost: service\r\nConnection: close\r\n\r\n");
  assert.match(await readToEnd(socket), /^HTTP\/1\.1 200 [^]*ok\n/);
});

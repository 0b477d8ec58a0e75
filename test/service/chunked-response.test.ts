import assert from "node:assert/strict";
import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { connect, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import test, { type TestContext } from "node:test";
import { startHttpServer } from "../../src/service/http-server/start-http-server.ts";

const shared = [Buffer.from("one\n"), Buffer.from(""), Buffer.from("zwölf\n")];
const sent = "4\r\none\n\r\n7\r\nzwölf\n\r\n0\r\n\r\n";

async function openClient(
  t: TestContext,
  respond: Parameters<typeof startHttpServer>[0],
): Promise<Socket> {
  const server = await startHttpServer(respond, { host: "127.0.0.1", port: 0 });
  t.after(() => server[Symbol.asyncDispose]());
  const socket = connect(Number(new URL(server.url).port), "127.0.0.1");
  t.after(() => socket.destroy());
  await once(socket, "connect");
  return socket;
}

function bodies(answers: string): string[] {
  return answers.split(/HTTP\/1\.1 200 OK\r\n.*?\r\n\r\n/s).slice(1);
}

test("requests that come together are answered in turn, each piece in a chunk", async (t) => {
  const socket = await openClient(t, () => new Response(ReadableStream.from(shared)));
  const get = "GET / HTTP/1.1\r\nHost: service\r\n";
  socket.write(`${get}\r\n${get}\r\n${get}Connection: close\r\n\r\n`);
  assert.deepEqual(bodies(await text(socket)), [sent, sent, sent]);
});

test("an answer has no more bytes than it announces, and none follows it", async (t) => {
  let requests = 0;
  const rest = "HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nforged";
  const socket = await openClient(t, () => {
    requests += 1;
    const body = ReadableStream.from([Buffer.from("four"), Buffer.from(rest)]);
    return new Response(requests === 1 ? body : "the next", {
      headers: requests === 1 ? { "content-length": "4" } : {},
    });
  });
  const get = "GET / HTTP/1.1\r\nHost: service\r\n\r\n";
  socket.write(`${get}${get}`);
  socket.on("error", () => {});
  let answers = "";
  socket.setEncoding("latin1").on("data", (text: string) => (answers += text));
  await once(socket, "close");
  assert.doesNotMatch(answers, /forged/);
});

test("an answer that breaks off ends only its connection", async (t) => {
  t.mock.method(console, "error", () => {});
  const socket = await openClient(t, () => {
    const body = ReadableStream.from(
      (async function* () {
        yield Buffer.from("four");
        await new Promise(setImmediate);
        throw new Error("The disk failed");
      })(),
    );
    return new Response(body, { headers: { "content-length": "600" } });
  });
  socket.write("GET / HTTP/1.1\r\nHost: service\r\n\r\n");
  socket.on("error", () => {}).resume();
  await once(socket, "close");
});

test("an answer whose first piece is longer than announced is cut off", async (t) => {
  const socket = await openClient(t, () => {
    return new Response(ReadableStream.from([Buffer.from("four and more")]), {
      headers: { "content-length": "4" },
    });
  });
  socket.write("GET / HTTP/1.1\r\nHost: service\r\n\r\n");
  socket.on("error", () => {});
  let answers = "";
  socket.setEncoding("latin1").on("data", (text: string) => (answers += text));
  await once(socket, "close");
  assert.doesNotMatch(answers, /and more/);
});

test("a client that knows no chunks gets only the pieces", async (t) => {
  const socket = await openClient(t, () => new Response(ReadableStream.from(shared)));
  // The probes of some proxies, such as HAProxy's, have no header at all.
  socket.write("GET / HTTP/1.0\r\n\r\n");
  assert.deepEqual(bodies(await text(socket)), ["one\nzwölf\n"]);
});

test("of a slow client some pieces wait in memory, and all arrive", async (t) => {
  const [pieces, bytes] = [400, 50_000];
  let most = 0;
  const socket = await openClient(t, (_request, connection) => {
    const { outgoing } = connection as { outgoing: ServerResponse };
    const body = async function* () {
      for (let i = 0; i < pieces; i++) {
        most = Math.max(most, outgoing.writableLength);
        yield Buffer.alloc(bytes, i);
      }
    };
    return new Response(ReadableStream.from(body()));
  });
  socket.write("GET / HTTP/1.1\r\nHost: service\r\nConnection: close\r\n\r\n");
  const [body = ""] = bodies(await text(socket.setEncoding("latin1")));
  const expected = Array.from({ length: pieces }, (_, i) => {
    return `c350\r\n${String.fromCharCode(i % 256).repeat(bytes)}\r\n`;
  });
  assert.ok(body === `${expected.join("")}0\r\n\r\n`, "each byte in its place");
  assert.ok(most <= 3 * bytes, `${most} bytes waited`);
});

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, open, readFile, rename, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { type TestContext } from "node:test";
import { connect, type TLSSocket } from "node:tls";
import { promisify } from "node:util";
import { connectionLimits, defaultConnectionLimits } from "../../src/contract/connection-limits.ts";
import type { Log } from "../../src/log/json-log.ts";
import { startHttpServer } from "../../src/service/http-server/start-http-server.ts";
import { readTlsCertificate } from "../../src/service/http-server/tls-certificate.ts";
import { opensslMissing } from "../support/cluster/cluster-missing.ts";
import { createCertificate } from "../support/create-certificate.ts";
import { until } from "../support/until.ts";

const run = promisify(execFile);
const skip = opensslMissing;
const hello = async () => new Response("hello\n");

/** Files as the kubelet keeps those of a Secret: links into a folder that is replaced at once. */
class SecretFiles {
  readonly folder: string;
  #version = 0;

  private constructor(folder: string) {
    this.folder = folder;
  }

  static async create(t: TestContext): Promise<SecretFiles> {
    const files = new SecretFiles(await mkdtemp(join(tmpdir(), "certificate-")));
    t.after(() => rm(files.folder, { recursive: true }));
    for (const name of ["tls.crt", "tls.key"]) {
      await symlink(join("..data", name), join(files.folder, name));
    }
    return files;
  }

  /** @returns the new certificate */
  async renew(keyOf?: number): Promise<string> {
    const name = `v${++this.#version}`;
    const folder = join(this.folder, name);
    await mkdir(folder);
    const key = join(folder, "tls.key");
    await createCertificate({ key, certificate: join(folder, "tls.crt") });
    if (keyOf !== undefined) await rename(join(this.folder, `v${keyOf}`, "tls.key"), key);
    await symlink(name, join(this.folder, "..next"));
    await rename(join(this.folder, "..next"), join(this.folder, "..data"));
    return readFile(join(folder, "tls.crt"), "utf8");
  }
}

/** A server of the files' certificate; `logged` resolves with the next line of its log. */
async function startServer(
  t: TestContext,
  files: SecretFiles,
  { connections = connectionLimits.connections.value, respond = hello } = {},
) {
  const waiting: ((message: string) => void)[] = [];
  const log: Log = (_level, message) => waiting.shift()?.(message);
  const server = await startHttpServer(
    respond,
    {
      host: "127.0.0.1",
      port: 0,
      certificate: await readTlsCertificate(files.folder, log),
    },
    { ...defaultConnectionLimits, connections },
  );
  t.after(() => server[Symbol.asyncDispose]());
  const port = Number(new URL(server.url).port);
  return {
    url: server.url,
    logged: () => new Promise<string>((resolve) => waiting.push(resolve)),
    /** A connection that trusts only the certificate, with a request sent. */
    ask: async (ca: string): Promise<TLSSocket> => {
      const socket = connect({ port, host: "127.0.0.1", servername: "localhost", ca });
      t.after(() => socket.destroy());
      socket.on("error", () => {});
      await once(socket, "secureConnect");
      socket.write("GET / HTTP/1.1\r\nhost: localhost\r\n\r\n");
      return socket;
    },
  };
}

async function readAnswer(socket: TLSSocket): Promise<string> {
  const [chunk] = (await once(socket, "data")) as [Buffer];
  return chunk.toString();
}

test("a renewed certificate is taken without a restart", { skip }, async (t) => {
  const files = await SecretFiles.create(t);
  const first = await files.renew();
  const server = await startServer(t, files);
  assert.match(server.url, /^https:/);
  assert.match(await readAnswer(await server.ask(first)), /200 OK[^]*hello/);
  const renewed = server.logged();
  const second = await files.renew();
  assert.equal(await renewed, "The certificate was renewed");
  assert.match(await readAnswer(await server.ask(second)), /200 OK/);
  await assert.rejects(server.ask(first));
});

test("a certificate with another one's key is not taken", { skip }, async (t) => {
  const files = await SecretFiles.create(t);
  const first = await files.renew();
  const server = await startServer(t, files);
  const logged = server.logged();
  await files.renew(1);
  assert.equal(await logged, "The new certificate cannot be used");
  assert.match(await readAnswer(await server.ask(first)), /200 OK/);
  const log = () => {};
  await assert.rejects(readTlsCertificate(files.folder, log), /tls\.crt" cannot be used/);
});

test("a certificate that is renewed while it is read is read again", { skip }, async (t) => {
  const files = await SecretFiles.create(t);
  await files.renew();
  const firstKey = join(files.folder, "v1", "tls.key");
  await rm(firstKey);
  await run("mkfifo", [firstKey]);
  const reading = readTlsCertificate(files.folder, () => {});
  // It opens only once the certificate was read and its key is being read.
  await using pipe = await open(firstKey, "w");
  const second = await files.renew();
  await pipe.writeFile(await readFile(join(files.folder, "v2", "tls.key")));
  await pipe.close();
  assert.equal((await reading)?.pair.cert, second);
});

test("a certificate needs its key", { skip }, async (t) => {
  const files = await SecretFiles.create(t);
  await files.renew();
  await rm(join(files.folder, "tls.key"));
  await assert.rejects(
    readTlsCertificate(files.folder, () => {}),
    /tls\.crt" cannot be used: Error: ENOENT.*tls\.key/,
  );
});

test("connections that wait make room for others over TLS too", { skip }, async (t) => {
  const files = await SecretFiles.create(t);
  const certificate = await files.renew();
  const answers: PromiseWithResolvers<Response>[] = [];
  const respond = () => {
    const answer = Promise.withResolvers<Response>();
    answers.push(answer);
    return answer.promise;
  };
  const server = await startServer(t, files, { connections: 2, respond });
  const working = await server.ask(certificate);
  const idle = await server.ask(certificate);
  await until("both have asked", () => answers.length === 2);
  answers[1]?.resolve(await hello());
  await readAnswer(idle);
  const closed = once(idle, "close");
  await server.ask(certificate);
  await closed;
  answers[0]?.resolve(await hello());
  assert.match(await readAnswer(working), /hello/);
});

import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { createServer, request, type IncomingMessage, type ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pipeline } from "node:stream";
import type { TestContext } from "node:test";
import { createS3Client, type S3Access } from "../../src/storage/s3/s3-client.ts";
import { findFreePort } from "../support/find-free-port.ts";
import { programPath } from "../support/cluster/programs.ts";
import { startProgram } from "../support/cluster/start-program.ts";
import { listenLocally } from "../support/listen-locally.ts";
import { untilReady } from "../support/cluster/until-ready.ts";

const accessKeyId = "test-key";
const secretAccessKey = "secret-of-the-test-key";

export interface S3Server {
  readonly access: S3Access;
  /** Folder in which the server keeps the bucket. */
  readonly folder: string;
}

/** A real S3 server (Versity Gateway over a folder) with an empty bucket, until the end of the test. */
export async function startS3Server(
  t: Pick<TestContext, "after">,
  address = "127.0.0.1",
): Promise<S3Server> {
  const home = await mkdtemp(join(tmpdir(), "s3-"));
  const bucket = "models";
  const folders = ["data", "metadata"].map((name) => join(home, name));
  for (const folder of folders) await mkdir(folder);
  const [data = "", metadata = ""] = folders;
  const endpoint = `http://${address}:${await findFreePort(address)}`;
  const server = await startProgram(
    await programPath("versitygw"),
    [
      `--access=${accessKeyId}`,
      `--secret=${secretAccessKey}`,
      `--port=${new URL(endpoint).host}`,
      "--quiet",
      "posix",
      `--sidecar=${metadata}`,
      data,
    ],
    join(home, "log"),
  );
  t.after(async () => {
    await server.kill();
    await rm(home, { recursive: true });
  });
  await untilReady("The S3 server", server, () => isListening(endpoint));
  const key = { accessKeyId, secretAccessKey };
  const access = { endpoint, region: "us-east-1", bucket, isPathStyle: true, ...key };
  await using client = createS3Client(access);
  await client.send({ method: "PUT", key: "" });
  return { access, folder: join(data, bucket) };
}

/** Sees a request before the server; where it gives true, the server does not. */
type Fault = (request: IncomingMessage, response: ServerResponse) => boolean;

interface FaultyServer extends S3Server {
  /** The server itself, where nothing fails or is counted. */
  readonly direct: S3Access;
  /** Each for one request, in their order. */
  readonly faults: Fault[];
  /** Method, path and range of every request. */
  readonly requests: string[];
  /** Bytes of bodies that went through. */
  readonly counted: { sent: number; received: number };
}

/** The server behind an address at which requests can fail. */
export async function startFaultyS3Server(t: Pick<TestContext, "after">): Promise<FaultyServer> {
  const server = await startS3Server(t);
  const faults: Fault[] = [];
  const requests: string[] = [];
  const counted = { sent: 0, received: 0 };
  const proxy = createServer((incoming, response) => {
    const { method = "GET", url = "/", headers } = incoming;
    requests.push(`${method} ${url.replace(/\?.*$/, "")} ${headers.range ?? ""}`.trim());
    if (faults.shift()?.(incoming, response) === true) return;
    const target = new URL(url, server.access.endpoint);
    const forwarded = request(target, { method, headers, setHost: false }, (answer) => {
      response.writeHead(answer.statusCode ?? 500, answer.headers);
      answer.on("data", (chunk: Buffer) => (counted.received += chunk.length));
      pipeline(answer, response, () => {});
    });
    incoming.on("data", (chunk: Buffer) => (counted.sent += chunk.length));
    pipeline(incoming, forwarded, () => {});
  });
  const endpoint = await listenLocally(t, proxy);
  const { access: direct } = server;
  return { ...server, direct, access: { ...direct, endpoint }, faults, requests, counted };
}

/** Breaks the connection when so many bytes of the answer's body were sent. */
export function cutAfter(bytes: number): Fault {
  return (_request, response) => {
    const write = response.write.bind(response);
    let left = bytes;
    response.write = (chunk: Uint8Array) => {
      left -= chunk.length;
      if (left >= 0) return write(chunk);
      setTimeout(() => response.destroy(), 50);
      return true;
    };
    return false;
  };
}

/** Takes a request and never answers. */
export function stayQuiet(request: IncomingMessage): boolean {
  request.resume();
  return true;
}

/** Answers as a server does that is overloaded. */
export function slowDown(_request: IncomingMessage, response: ServerResponse): boolean {
  response.writeHead(503).end("<Error><Code>SlowDown</Code></Error>");
  return true;
}

/** Answers as a server does that does not let the key do this. */
export function denyAccess(_request: IncomingMessage, response: ServerResponse): boolean {
  response.writeHead(403).end("<Error><Code>AccessDenied</Code></Error>");
  return true;
}

function isListening(endpoint: string): Promise<boolean> {
  return fetch(endpoint).then(
    async (answer) => (await answer.text()) !== "",
    () => false,
  );
}

/** The file with which the service keeps models and artifacts in the bucket. */
export function s3FileContent({ isPathStyle, ...access }: S3Access): string {
  return JSON.stringify({ ...access, pathStyle: isPathStyle });
}

import { createHash } from "node:crypto";
import { createReadStream, statSync } from "node:fs";
import { createServer, type ServerResponse } from "node:http";
import { pipeline } from "node:stream";
import type { TestContext } from "node:test";
import { listenLocally } from "../support/listen-locally.ts";

export const hubToken = "hf_secretOfTheProject";
export const commit = "0123456789abcdef0123456789abcdef01234567";

/** What a stand-in for the Hugging Face Hub saw and does. */
export interface HubStandIn {
  /** Address to name as `endpoint`. */
  readonly endpoint: string;
  /** Method, path and range of each request, those to the storage with `storage`. */
  readonly requests: string[];
  /** Each breaks one transfer of the storage after so many bytes. */
  readonly cuts: number[];
  /** How many requests to the storage carried a token. */
  leaks: number;
}

/**
 * A stand-in for the Hub, as far as its address of files goes (`/OWNER/NAME/resolve/REVISION/PATH`):
 * it redirects to a storage of another origin, and names the commit. `acme/private` needs the
 * token, and `acme/renamed` has become `acme/public`. It is not a Hub: none is available here.
 * Files are contents, or paths of some; `relay` gives another address to the storage.
 */
export async function startHubStandIn(
  t: Pick<TestContext, "after">,
  files: Readonly<Record<string, Buffer | string>>,
  relay = async (origin: string) => origin,
): Promise<HubStandIn> {
  const requests: string[] = [];
  const cuts: number[] = [];
  const ownStorage = await listenLocally(
    t,
    createServer((request, response) => {
      requests.push(`storage ${request.method} ${request.headers.range ?? ""}`.trim());
      if (request.headers.authorization !== undefined) hub.leaks++;
      const [, name = ""] = /^\/(.*)\?signature=1$/.exec(request.url ?? "") ?? [];
      sendContent(response, files[decodeURIComponent(name)], {
        range: request.headers.range,
        cut: cuts.shift(),
      });
    }),
  );
  const storage = await relay(ownStorage);
  const server = createServer(({ method, url = "", headers }, response) => {
    requests.push(`${method} ${url}`);
    const [, repository, revision = "", file = ""] =
      /^\/([^/]+\/[^/]+)\/resolve\/([^/]+)\/(.*)$/.exec(url) ?? [];
    const refuse = (status: number, code: string) =>
      response.writeHead(status, { "x-error-code": code }).end();
    if (repository === "acme/renamed") {
      const location = url.replace("acme/renamed", "acme/public");
      return response.writeHead(307, { location }).end();
    }
    const isKnown = repository === "acme/public" || repository === "acme/private";
    if (!isKnown) return refuse(401, "RepoNotFound");
    if (repository === "acme/private" && headers.authorization !== `Bearer ${hubToken}`) {
      return refuse(401, "GatedRepo");
    }
    const isRevision = ["main", "refs%2Fpr%2F1", commit].includes(revision);
    if (!isRevision) return refuse(404, "RevisionNotFound");
    if (files[decodeURIComponent(file)] === undefined) return refuse(404, "EntryNotFound");
    const location = `${storage}/${file}?signature=1`;
    return response.writeHead(302, { location, "x-repo-commit": commit }).end();
  });
  const endpoint = await listenLocally(t, server);
  const hub: HubStandIn = { endpoint, requests, cuts, leaks: 0 };
  return hub;
}

interface Transfer {
  readonly range: string | undefined;
  readonly cut: number | undefined;
}

function sendContent(
  response: ServerResponse,
  content: Buffer | string | undefined,
  { range, cut }: Transfer,
): void {
  if (content === undefined) {
    response.writeHead(403).end();
    return;
  }
  const bytes = typeof content === "string" ? statSync(content).size : content.length;
  const [, first = "0", last = ""] = /^bytes=(\d+)-(\d*)$/.exec(range ?? "") ?? [];
  const start = Number(first);
  const end = last === "" ? bytes : Math.min(bytes, Number(last) + 1);
  response.writeHead(range === undefined ? 200 : 206, {
    etag: `"${createHash("md5").update(content).digest("hex")}"`,
    "content-length": end - start,
    ...(range !== undefined && { "content-range": `bytes ${start}-${end - 1}/${bytes}` }),
  });
  if (typeof content === "string") {
    pipeline(createReadStream(content, { start, end: end - 1 }), response, () => {});
    return;
  }
  if (cut === undefined) {
    response.end(content.subarray(start, end));
    return;
  }
  response.write(content.subarray(start, Math.min(end, start + cut)), () => {
    // A connection that is cut at once takes along what its reader has not read.
    setTimeout(() => response.destroy(), 100);
  });
}

import { lookup } from "node:dns";
import { Agent, type Dispatcher, request } from "undici";
import { ServiceError } from "../../contract/errors.ts";
import { readAnswerHeader } from "../request-source.ts";
import { encodeKey } from "../s3/s3-client.ts";
import { lookupLimits } from "./limit-lookups.ts";
import type { HubSource } from "./parse-source.ts";

/** Redirects of a repository that was renamed. */
const maxRedirects = 3;
const answerLimitMs = 15_000;

export interface HubAccess {
  readonly endpoint: string;
  readonly token?: string | undefined;
}

/** Address of a file of a repository; it redirects to where the file is stored. */
export function hubFileUrl({ endpoint }: HubAccess, { repository, revision, file }: HubSource) {
  const base = endpoint.replace(/\/+$/, "");
  return `${base}/${repository}/resolve/${encodeURIComponent(revision)}/${encodeKey(file)}`;
}

export function hubHeaders({ token }: HubAccess): Record<string, string> {
  return token === undefined ? {} : { authorization: `Bearer ${token}` };
}

export function createHubAgent(): Agent {
  return new Agent({
    connect: { timeout: 10_000, lookup },
    connections: lookupLimits.all,
    headersTimeout: answerLimitMs,
    bodyTimeout: answerLimitMs,
  });
}

/**
 * The commit that a revision is now.
 * @throws ServiceError model_not_found, model_fetch_failed
 */
export async function findCommit(
  agent: Dispatcher,
  access: HubAccess,
  source: HubSource,
): Promise<string> {
  const first = new URL(hubFileUrl(access, source));
  let url = first;
  for (let hop = 0; hop <= maxRedirects; hop++) {
    const answer = await askHub(agent, { url, headers: hubHeaders(access), source });
    const commit = readAnswerHeader(answer, "x-repo-commit");
    if (commit !== undefined && /^[0-9a-f]{40}$/.test(commit)) return commit;
    const next = URL.parse(readAnswerHeader(answer, "location") ?? "", url.href);
    if (next?.origin !== first.origin) break;
    url = next;
  }
  throw fetchError(source, "the host named no commit");
}

interface HubQuestion {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly source: HubSource;
}

async function askHub(dispatcher: Dispatcher, { url, headers, source }: HubQuestion) {
  try {
    const answer = await request(url, { method: "HEAD", dispatcher, headers });
    await answer.body.dump();
    if ([401, 403, 404].includes(answer.statusCode)) throw hubFileMissingError(source, answer);
    if (answer.statusCode < 400) return answer;
    throw new Error(`the host answered ${answer.statusCode}`);
  } catch (cause) {
    if (cause instanceof ServiceError) throw cause;
    throw fetchError(source, cause instanceof Error ? cause.message : String(cause), cause);
  }
}

function describeHubSource({ repository, revision, file }: HubSource): string {
  return `hf://${repository}@${encodeURIComponent(revision)}/${file}`;
}

function hubFileMissingError(source: HubSource, answer: Dispatcher.ResponseData): ServiceError {
  const code = readAnswerHeader(answer, "x-error-code") ?? `status ${answer.statusCode}`;
  const reason = "does not exist, or the project has no token that may read it";
  const message = `"${describeHubSource(source)}" ${reason} (${code})`;
  return new ServiceError("model_not_found", message);
}

function fetchError(source: HubSource, reason: string, cause?: unknown): ServiceError {
  const message = `Cannot find "${describeHubSource(source)}": ${reason}`;
  return new ServiceError("model_fetch_failed", message, { cause });
}

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import type { TestContext } from "node:test";
import { isDeepStrictEqual } from "node:util";
import {
  actionsApp,
  type Answer,
  type Caller,
  callerLogin,
  forbidden,
  notFound,
  type Operations,
  person,
  refusal,
} from "./github-answer.ts";
import { createApps, type InstalledApp } from "./github-apps.ts";
import { createCheckRuns, type ListedAnnotation } from "./github-check-runs.ts";
import { createComments } from "./github-comments.ts";
import { type GitHubFault, gitHubFaults } from "./github-faults.ts";
import { type GitHubRequest, loadGitHubInterface } from "./github-openapi.ts";
import { isPermitted, neededPermissions, type Permissions } from "./github-permissions.ts";
import { listenLocally } from "../../support/listen-locally.ts";
import {
  type Addresses,
  type CheckRun,
  type Comment,
  commitResource,
  comparisonResource,
} from "./github-resources.ts";

interface RecordedRequest {
  /** Such as `checks/create`, or `graphql`; empty where the path names none. */
  readonly operation: string;
  readonly method: string;
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  readonly body: unknown;
  /** 0 where the connection was cut. */
  readonly status: number;
  /** When it came, milliseconds of `performance.now()`. */
  readonly at: number;
}

interface OrderedFault {
  /** Requests of this operation fail; any do without it. */
  readonly operation?: string;
  readonly fault: GitHubFault;
  /** How many requests fail, one by default. */
  readonly times?: number;
  /** The request is carried out all the same, and only its answer is lost. */
  readonly isDone?: boolean;
}

/**
 * A stand-in for GitHub's REST interface with one repository, which holds every request to GitHub's
 * OpenAPI document. Of GraphQL it knows who asks.
 */
export interface GitHub {
  /** What a workflow finds as GITHUB_API_URL. */
  readonly url: string;
  /** A workflow's token. */
  readonly token: string;
  /** The personal access token of a member of the repository. */
  readonly memberToken: string;
  /** Variables that lead a workflow's step here. */
  readonly environment: Readonly<Record<"GITHUB_API_URL" | "GITHUB_SERVER_URL", string>>;
  /** What the workflow's token may do now. */
  readonly permissions: Permissions;
  /** What arrived, in the order of the answers. */
  readonly requests: readonly RecordedRequest[];
  checkRuns(): CheckRun[];
  annotations(checkRunId: number): readonly ListedAnnotation[];
  comments(issueNumber: number): Comment[];
  /** What merge commits are made of: the base, then what is merged into it. */
  readonly parents: Map<string, readonly string[]>;
  /** Last common commit of two, by `<base>...<head>`. */
  readonly mergeBases: Map<string, string>;
  fail(fault: OrderedFault): void;
}

interface GitHubOptions {
  /** `/api/v3` for GitHub Enterprise Server. */
  readonly root?: string;
  readonly permissions?: Partial<Permissions>;
  readonly app?: InstalledApp;
}

const writesAMinute = 80;
const requestsAnHour = 1_000;

/** Starts the stand-in on a free port. It is gone after the test, which fails where one of its own answers was not GitHub's. */
export async function startGitHub(t: TestContext, options: GitHubOptions = {}): Promise<GitHub> {
  const { root = "" } = options;
  const server = createServer();
  const origin = await listenLocally(t, server);
  const { gitHub, answer, brokenAnswers } = await createGitHub(
    { server: origin, api: `${origin}${root}` },
    options,
  );
  server.on("request", (request: IncomingMessage, response: ServerResponse) => {
    readRequest(request)
      .then(async (read) => send(response, await answer(read)))
      .catch((error: unknown) => brokenAnswers.push(String(error)));
  });
  t.after(() => {
    assert.deepEqual(brokenAnswers, [], "the stand-in answers as GitHub's OpenAPI document says");
  });
  return gitHub;
}

interface Sent extends Answer {
  readonly headers: Readonly<Record<string, string>>;
}

async function createGitHub(
  addresses: Addresses,
  { root = "", permissions: given, app }: GitHubOptions,
) {
  const document = await loadGitHubInterface(root);
  const graphqlPath = `${root.replace(/\/v3$/, "")}/graphql`;
  const checkRuns = createCheckRuns(addresses);
  const comments = createComments(addresses);
  const apps = createApps(addresses, app);
  const mergeBases = new Map<string, string>();
  const parents = new Map<string, readonly string[]>();
  const operations: Operations = {
    ...checkRuns.operations,
    ...comments.operations,
    ...apps.operations,
    "git/get-commit"({ params: { commit_sha: sha = "" } }) {
      const found = parents.get(sha);
      return found === undefined
        ? notFound
        : { status: 200, body: commitResource(addresses, sha, found) };
    },
    "repos/compare-commits-with-basehead"({ params }) {
      const sha = mergeBases.get(params["basehead"] ?? "");
      return sha === undefined
        ? notFound
        : { status: 200, body: comparisonResource(addresses, sha) };
    },
  };
  const permissions: Permissions = {
    checks: "write",
    contents: "read",
    issues: "write",
    pull_requests: "write",
    ...given,
  };
  const token = `ghs_${randomBytes(18).toString("hex")}`;
  const memberToken = `ghp_${randomBytes(18).toString("hex")}`;
  const requests: RecordedRequest[] = [];
  const faults: { operation: string | undefined; fault: GitHubFault; isDone: boolean }[] = [];
  const brokenAnswers: string[] = [];

  async function authenticateCaller(
    { headers }: GitHubRequest,
    operation: string,
  ): Promise<Caller | undefined> {
    const [, presented = ""] =
      /^(?:bearer|token) (\S+)$/i.exec(headers["authorization"] ?? "") ?? [];
    if (operation.startsWith("apps/")) return (await apps.isSignedBy(presented)) ? app : undefined;
    if (presented === token) return actionsApp;
    if (presented === memberToken) return person;
    return apps.hasMade(presented) ? app : undefined;
  }

  function isTooFast({ method }: GitHubRequest): boolean {
    const since = performance.now() - 60_000;
    const isWrite = (one: { readonly method: string }) => one.method !== "GET";
    return (
      isWrite({ method }) &&
      requests.filter((one) => isWrite(one) && one.at > since).length >= writesAMinute
    );
  }

  async function carryOut(
    request: GitHubRequest,
    operation: string,
    params: Record<string, string>,
  ): Promise<Answer> {
    if (request.headers["user-agent"] === undefined)
      return forbidden(
        "Request forbidden by administrative rules. Please make sure your request has a User-Agent header",
      );
    const caller = await authenticateCaller(request, operation);
    if (caller === undefined) return faultAnswer(gitHubFaults.unauthorized);
    if (operation === "graphql") return answerQuery(request.body, caller);
    const carried = operations[operation];
    if (carried === undefined) return notFound;
    if (isTooFast(request)) return faultAnswer(gitHubFaults.secondaryLimit(60));
    if (caller.id === actionsApp.id && !isPermitted(operation, permissions)) {
      const needed = { "x-accepted-github-permissions": neededPermissions(operation) };
      return faultAnswer({ ...gitHubFaults.forbidden, headers: needed });
    }
    const errors = document.requestErrors(operation, request);
    if (errors.length > 0) return refusal(errors);
    const answer = carried({ params, query: request.query, body: request.body, caller });
    if (answer.status < 300) {
      const broken = document.answerErrors(operation, answer.status, answer.body);
      brokenAnswers.push(...broken.map((complaint) => `${operation}: ${complaint}`));
    }
    return answer;
  }

  async function answer(request: GitHubRequest): Promise<Sent | "reset"> {
    const at = performance.now();
    const { operation = "", params = {} } =
      request.path === graphqlPath ? { operation: "graphql" } : (document.match(request) ?? {});
    const index = faults.findIndex(
      (one) => one.operation === undefined || one.operation === operation,
    );
    const [ordered] = index === -1 ? [] : faults.splice(index, 1);
    const carried =
      ordered?.isDone === false ? undefined : await carryOut(request, operation, params);
    const given = ordered === undefined ? carried : ordered.fault;
    const { method, path, query, body } = request;
    const status = given === "reset" || given === undefined ? 0 : given.status;
    requests.push({ operation, method, path, query, body, status, at });
    if (given === undefined || given === "reset") return "reset";
    const answered = "message" in given ? faultAnswer(given) : given;
    const link = linkHeader(addresses.api, request, answered.total);
    return {
      ...answered,
      headers: { ...limitHeaders(requests.length), ...link, ...answered.headers },
    };
  }

  const gitHub: GitHub = {
    url: addresses.api,
    token,
    memberToken,
    environment: { GITHUB_API_URL: addresses.api, GITHUB_SERVER_URL: addresses.server },
    permissions,
    requests,
    checkRuns: checkRuns.list,
    annotations: checkRuns.annotations,
    comments: comments.list,
    mergeBases,
    parents,
    fail({ operation, fault, times = 1, isDone = false }) {
      for (let left = times; left > 0; left--) faults.push({ operation, fault, isDone });
    },
  };
  return { gitHub, answer, brokenAnswers };
}

function answerQuery(body: unknown, caller: Caller): Answer {
  const isKnown = isDeepStrictEqual(body, { query: "{ viewer { login } }" });
  return isKnown
    ? { status: 200, body: { data: { viewer: { login: callerLogin(caller) } } } }
    : { status: 200, body: { errors: [{ message: "Not known to the stand-in" }] } };
}

function faultAnswer({ status, headers, message }: Exclude<GitHubFault, "reset">): Answer {
  const documentation = "https://docs.github.com/rest";
  return {
    status,
    headers,
    body: { message, documentation_url: documentation, status: String(status) },
  };
}

function limitHeaders(used: number): Record<string, string> {
  return {
    "x-ratelimit-limit": String(requestsAnHour),
    "x-ratelimit-remaining": String(Math.max(0, requestsAnHour - used)),
    "x-ratelimit-used": String(used),
    "x-ratelimit-reset": String(Math.ceil(Date.now() / 1000) + 3_600),
    "x-ratelimit-resource": "core",
  };
}

/** Where the next page of a list is. */
function linkHeader(
  api: string,
  { path, query }: GitHubRequest,
  total = 0,
): Record<string, string> {
  const { per_page: size = "30", page = "1" } = query;
  if (Number(page) * Math.min(Number(size), 100) >= total) return {};
  const next = new URLSearchParams({ ...query, page: String(Number(page) + 1) });
  return { link: `<${new URL(path, api).href}?${next.toString()}>; rel="next"` };
}

async function readRequest(message: IncomingMessage): Promise<GitHubRequest> {
  const { pathname, searchParams } = new URL(message.url ?? "/", "http://localhost");
  const content = await text(message);
  const headers = Object.entries(message.headers).map(
    ([name, value]) => [name, String(value)] as const,
  );
  return {
    method: message.method ?? "GET",
    path: pathname,
    query: Object.fromEntries(searchParams),
    headers: Object.fromEntries(headers),
    body: content === "" ? undefined : JSON.parse(content),
  };
}

function send(response: ServerResponse, sent: Sent | "reset"): void {
  if (sent === "reset") {
    response.destroy();
    return;
  }
  const body = JSON.stringify(sent.body);
  const standard = {
    "content-type": "application/json; charset=utf-8",
    server: "stand-in for GitHub",
  };
  response.writeHead(sent.status, { ...standard, ...sent.headers }).end(body);
}

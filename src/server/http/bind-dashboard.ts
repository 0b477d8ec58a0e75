import type { Hono } from "hono";
import { limits } from "../../contract/limits.ts";
import { jobsOfFirstView } from "../../contract/page-addresses.ts";

/** What the page may load and do: only its own scripts, styles and requests, and in no frame. */
const pagePolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self' data:",
  "font-src 'self'",
  "worker-src 'self'",
  "manifest-src 'self'",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types dashboard",
].join("; ");

/** Of the worker that hashes files in WebAssembly; a worker has the policy of its own answer. */
const hashWorkerPolicy = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'";

const pageHeaders = {
  "content-security-policy": pagePolicy,
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "permissions-policy": "camera=(), microphone=(), geolocation=()",
  "referrer-policy": "no-referrer",
};

/** Serves the files of the page, and its document at every address that browsers open. */
export function bindDashboard(app: Hono, dashboard: Dashboard): void {
  app.get("/assets/:name", async (c, next) => {
    const file = dashboard.files.get(c.req.path);
    return file ? fileResponse(c.req.path, file, c.req.header("accept-encoding")) : next();
  });
  app.get("/favicon.ico", async (c, next) => {
    const icon = [...dashboard.files.keys()].find((path) => path.endsWith(".svg"));
    return icon === undefined ? next() : c.redirect(icon);
  });
  app.get("*", async (c, next) => {
    const { path } = c.req;
    // Programs such as link previews say nothing of HTML, and ask for pages all the same.
    const isPage = acceptsHtml(c.req.header("accept")) ? !isInterface(path) : isPagePath(path);
    if (!isPage) return next();
    return shellResponse(dashboard.shell, c.req.raw, listFirstRequests(c.req.raw));
  });
}

/** Gives browsers a page at a link to a file, which says what it is; programs get the file. */
export function bindLinkPage(app: Hono, { shell }: Dashboard): void {
  app.get("/v1/links/:id/:name", async (c, next) => {
    const isPage = acceptsHtml(c.req.header("accept")) && c.req.query("download") === undefined;
    return isPage ? shellResponse(shell, c.req.raw) : next();
  });
}

/** Addresses for programs, which show their answers to browsers too. */
function isInterface(path: string): boolean {
  return /^\/(v1|worker|auth|assets|github|healthz|readyz|metrics)(\/|$)/.test(path);
}

function acceptsHtml(accepted = ""): boolean {
  return accepted.includes("text/html");
}

/** The pages of the dashboard, which are there for whoever asks. */
function isPagePath(path: string): boolean {
  const pages =
    "jobs|batches|suites|models|compare|targets|terms|new|new-batch|tokens|webhooks|project|audit|account";
  return new RegExp(`^/((${pages}|health|sign-in)(/|$)|$)`).test(path);
}

/** @param preloaded what browsers ask for while they load the scripts; by default nothing */
function shellResponse(
  shell: string,
  { headers: asked }: Request,
  preloaded: readonly string[] = [],
): Response {
  const cookies = asked.get("cookie") ?? "";
  const theme = /(?:^|; )mos-theme=(light|dark)(?:;|$)/.exec(cookies)?.[1];
  const html = theme === undefined ? shell : shell.replace("<html", `<html data-theme="${theme}"`);
  const headers = new Headers({
    ...pageHeaders,
    "content-type": "text/html; charset=utf-8",
    "cache-control": "no-cache",
  });
  for (const path of preloaded) {
    headers.append("link", `<${path}>; rel=preload; as=fetch; crossorigin`);
  }
  return new Response(html, { headers });
}

/** What a page asks for first: who is signed in, and what is shown there. */
function listFirstRequests({ url, headers }: Request): string[] {
  const isKnown = headers.get("cookie")?.includes("mos-session") ?? false;
  return ["/v1/self", ...(isKnown ? listShown(new URL(url)) : [])];
}

/** Requests of the pages that are opened most, as those send them. */
function listShown({ pathname, search }: URL): string[] {
  const [, list, id] = /^\/(jobs|batches)\/([\w-]+)$/.exec(pathname) ?? [];
  const summaries = "/v1/jobs/summaries";
  if (list === "jobs") return [`/v1/jobs/${id}`];
  if (list === "batches") {
    return [`/v1/batches/${id}`, `${summaries}?batch=${id}&limit=${limits.pageMax}`];
  }
  const isAllJobs = search === "" && (pathname === "/" || pathname === "/jobs");
  return isAllJobs ? [`${summaries}?limit=${jobsOfFirstView}`] : [];
}

function fileResponse(path: string, file: DashboardFile, accepted = ""): Response {
  const names = accepted.split(",").map((name) => name.trim().split(";", 1)[0]);
  const [encoding, content] = [...file.encoded].find(([name]) => names.includes(name)) ?? [];
  const headers = new Headers({
    "content-type": file.mediaType,
    "cache-control": "public, max-age=31536000, immutable",
    "content-security-policy": path.includes("hash-worker") ? hashWorkerPolicy : pagePolicy,
    "cross-origin-resource-policy": "same-origin",
    vary: "accept-encoding",
  });
  if (encoding !== undefined) headers.set("content-encoding", encoding);
  return new Response(content ?? file.content, { headers });
}

/** A file of the page, as it is and compressed. */
export interface DashboardFile {
  readonly mediaType: string;
  readonly content: Uint8Array<ArrayBuffer>;
  /** By the names that `Accept-Encoding` has for them, the smallest first. */
  readonly encoded: ReadonlyMap<string, Uint8Array<ArrayBuffer>>;
}

/** The built page. */
export interface Dashboard {
  /** The document of every address. */
  readonly shell: string;
  /** By their paths; the names contain hashes of their contents. */
  readonly files: ReadonlyMap<string, DashboardFile>;
}

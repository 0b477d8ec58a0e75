import { createHmac, timingSafeEqual } from "node:crypto";
import { artifactResponse } from "./artifact-handlers.ts";
import { canRead } from "../../auth/authenticate.ts";
import { ServiceError } from "../../contract/errors.ts";
import { summarizeJob } from "../../contract/jobs/summarize-job.ts";
import { findWeightFiles } from "../../contract/jobs/weight-files.ts";
import type { LinkedArtifact, LinkedResult } from "../../contract/routes/artifact-routes.ts";
import type { Records } from "../../records/open-records.ts";
import type { RouteHandlers } from "../http/bind-routes.ts";
import type { ServerContext } from "../http/server-context.ts";
import { notFoundError } from "../http/problem-response.ts";

type LinkHandlers = Pick<
  RouteHandlers,
  "linkArtifact" | "deleteLinks" | "getLinkedArtifact" | "describeLink"
>;

export const linkHandlers: LinkHandlers = {
  async linkArtifact({ records, publicUrl, now }, { params, caller, body, audit, request }) {
    const { id, name } = params;
    const artifact = await records.artifacts.find(id, name);
    if (!artifact) throw notFoundError("artifact", name, `of job "${id}"`);
    const { sha256 } = artifact;
    const asked = now().getTime() / 1000 + body.expiresInSeconds;
    const end = caller.expiresAt === null ? Infinity : Date.parse(caller.expiresAt) / 1000;
    const expires = Math.floor(Math.min(asked, end));
    const key = await records.artifacts.makeLinkKey(id, name, audit);
    const by = caller.tokenId ?? caller.personId ?? undefined;
    const summary = body.withSummary ? "true" : undefined;
    const path = signArtifactLink(key, { id, name, sha256, expires, by, summary });
    const base = publicUrl ?? new URL(request.url).origin;
    const expiresAt = new Date(expires * 1000).toISOString();
    return { status: 201, json: { url: `${base}/v1${path}`, expiresAt } };
  },

  async deleteLinks({ records }, { params, audit }) {
    await records.artifacts.deleteLinkKey(params.id, audit);
    return { status: 204 };
  },

  async getLinkedArtifact(context, { params, query, headers }) {
    const { artifact } = await requireLinked(context, params, query);
    return artifactResponse(context, { ...artifact, jobId: params.id }, headers);
  },

  async describeLink(context, { params, query }) {
    const { artifact, linked } = await requireLinked(context, params, query);
    const { name, bytes, sha256 } = artifact;
    const expiresAt = new Date(linked.expires * 1000).toISOString();
    const result = linked.summary ? await describeResult(context, params.id) : null;
    const weightFiles = findWeightFiles(await context.records.artifacts.list(params.id), name);
    return { status: 200, json: { name, bytes, sha256, expiresAt, weightFiles, result } };
  },
};

/**
 * A link that somebody made who may still read its file, and the file.
 * @throws ServiceError not_found, link_expired
 */
async function requireLinked(
  { records, now }: Pick<ServerContext, "records" | "now">,
  params: Pick<LinkedArtifact, "id" | "name">,
  query: Omit<LinkedArtifact, "id" | "name"> & { readonly signature: string },
) {
  const { expires, sha256, by, summary, signature } = query;
  const linked = { ...params, expires, sha256, by, summary };
  // Before the job is read: a guessed link costs no more than this.
  const key = await records.artifacts.findLinkKey(params.id);
  if (key === undefined || !isSignedLink(key, linked, signature)) {
    throw notFoundError("link", `${params.id}/${params.name}`);
  }
  if (linked.expires * 1000 <= now().getTime()) {
    const end = new Date(linked.expires * 1000).toISOString();
    throw new ServiceError("link_expired", `The link was valid until ${end}`);
  }
  if (!(await isMakerAllowed(records, linked, now()))) {
    const message = "The link ended when whoever made it could no longer read the file";
    throw new ServiceError("link_expired", message);
  }
  const artifact = await records.artifacts.find(params.id, params.name);
  if (artifact?.sha256 !== linked.sha256) {
    throw notFoundError("artifact", params.name, `of job "${params.id}"`);
  }
  return { artifact, linked };
}

/** Of the gates what they found: their notes name machines, branches and baselines. */
async function describeResult(
  { records }: Pick<ServerContext, "records">,
  id: string,
): Promise<LinkedResult | null> {
  const owner = await records.owners.findOfJob(id);
  const job = owner && (await records.jobs.find(owner.project, id));
  if (job === undefined) return null;
  const { model, target, scheme, granularity, blockSize, ...summary } = summarizeJob(job);
  const { status, dryRun, figures, warnings, finishedAt } = summary;
  const gates = summary.gates.map(({ gate, limit, level, actual, passed }) => {
    return { gate, limit, level, actual, passed, baseline: null };
  });
  const recipe = { scheme, granularity, blockSize };
  return { model, target, ...recipe, status, dryRun, figures, warnings, gates, finishedAt };
}

/** ServiceAccounts cannot be asked for: what they link ends at its time, or with all links. */
async function isMakerAllowed(
  records: Pick<Records, "owners" | "tokens" | "members">,
  { id, by }: LinkedArtifact,
  now: Date,
): Promise<boolean> {
  if (by === undefined) return true;
  const owner = await records.owners.findOfJob(id);
  // The answer to a link whose job is gone is that its file is not found.
  return owner === undefined || canRead(records, { id: by, owner, now });
}

/** The path and the query of a link, below the base address with `/v1`. */
function signArtifactLink(key: Buffer, linked: LinkedArtifact): string {
  const { id, name, expires, sha256, by, summary } = linked;
  const signature = computeSignature(key, linked).toString("base64url");
  const chosen = { ...(by !== undefined && { by }), ...(summary !== undefined && { summary }) };
  const query = new URLSearchParams({ expires: String(expires), sha256, ...chosen, signature });
  return `/links/${id}/${name}?${query.toString()}`;
}

function isSignedLink(key: Buffer, linked: LinkedArtifact, signature: string): boolean {
  const expected = computeSignature(key, linked);
  const given = Buffer.from(signature, "base64url");
  return given.length === expected.length && timingSafeEqual(given, expected);
}

function computeSignature(key: Buffer, linked: LinkedArtifact): Buffer {
  const { id, name, expires, sha256, by, summary } = linked;
  const parts = ["artifact", id, name, sha256, expires, by ?? ""];
  // A link to the file only says no more if somebody adds to its address.
  if (summary !== undefined) parts.push("summary");
  return createHmac("sha256", key).update(parts.join("\n")).digest();
}

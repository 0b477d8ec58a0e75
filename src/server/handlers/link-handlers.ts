import { createHmac, timingSafeEqual } from "node:crypto";
import { artifactResponse } from "./artifact-handlers.ts";
import { canRead } from "../../auth/authenticate.ts";
import { ServiceError } from "../../contract/errors.ts";
import type { LinkedArtifact } from "../../contract/routes/artifact-routes.ts";
import type { Records } from "../../records/open-records.ts";
import type { RouteHandlers } from "../http/bind-routes.ts";
import { notFoundError } from "../http/problem-response.ts";

type LinkHandlers = Pick<RouteHandlers, "linkArtifact" | "deleteLinks" | "getLinkedArtifact">;

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
    const path = signArtifactLink(key, { id, name, sha256, expires, by });
    const base = publicUrl ?? new URL(request.url).origin;
    const expiresAt = new Date(expires * 1000).toISOString();
    return { status: 201, json: { url: `${base}/v1${path}`, expiresAt } };
  },

  async deleteLinks({ records }, { params, audit }) {
    await records.artifacts.deleteLinkKey(params.id, audit);
    return { status: 204 };
  },

  async getLinkedArtifact(context, { params, query, headers }) {
    const { records, now } = context;
    const { signature, ...rest } = query;
    const linked = { ...params, ...rest };
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
    return artifactResponse(context, { ...artifact, jobId: params.id }, headers);
  },
};

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
  const { id, name, expires, sha256, by } = linked;
  const signature = computeSignature(key, linked).toString("base64url");
  const maker = by === undefined ? {} : { by };
  const query = new URLSearchParams({ expires: String(expires), sha256, ...maker, signature });
  return `/links/${id}/${name}?${query.toString()}`;
}

function isSignedLink(key: Buffer, linked: LinkedArtifact, signature: string): boolean {
  const expected = computeSignature(key, linked);
  const given = Buffer.from(signature, "base64url");
  return given.length === expected.length && timingSafeEqual(given, expected);
}

function computeSignature(key: Buffer, { id, name, expires, sha256, by }: LinkedArtifact): Buffer {
  const text = ["artifact", id, name, sha256, expires, by ?? ""].join("\n");
  return createHmac("sha256", key).update(text).digest();
}

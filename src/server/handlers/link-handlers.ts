import { createHmac, timingSafeEqual } from "node:crypto";
import { artifactResponse } from "./artifact-handlers.ts";
import { ServiceError } from "../../contract/errors.ts";
import type { LinkedArtifact } from "../../contract/routes/artifact-routes.ts";
import type { RouteHandlers } from "../http/bind-routes.ts";
import { notFoundError } from "../http/problem-response.ts";

export const linkHandlers: Pick<RouteHandlers, "linkArtifact" | "getLinkedArtifact"> = {
  async linkArtifact({ records, publicUrl, now }, { params, body, audit, request }) {
    const { id, name } = params;
    const artifact = await records.artifacts.find(id, name);
    if (!artifact) throw notFoundError("artifact", name, `of job "${id}"`);
    const { sha256 } = artifact;
    const expires = Math.floor(now().getTime() / 1000) + body.expiresInSeconds;
    const key = await records.artifacts.readLinkKey({ audit, subject: `${id}/${name}` });
    const path = signArtifactLink(key, { id, name, sha256, expires });
    const base = publicUrl ?? new URL(request.url).origin;
    const expiresAt = new Date(expires * 1000).toISOString();
    return { status: 201, json: { url: `${base}/v1${path}`, expiresAt } };
  },

  async getLinkedArtifact(context, { params, query, headers }) {
    const { records, now } = context;
    const { signature, ...rest } = query;
    const linked = { ...params, ...rest };
    // Before any search: a guessed link costs no more than this.
    const isSigned = isSignedLink(await records.artifacts.readLinkKey(), linked, signature);
    if (!isSigned) throw notFoundError("link", `${params.id}/${params.name}`);
    if (linked.expires * 1000 <= now().getTime()) {
      const end = new Date(linked.expires * 1000).toISOString();
      throw new ServiceError("link_expired", `The link was valid until ${end}`);
    }
    const artifact = await records.artifacts.find(params.id, params.name);
    if (artifact?.sha256 !== linked.sha256) {
      throw notFoundError("artifact", params.name, `of job "${params.id}"`);
    }
    return artifactResponse(context, { ...artifact, jobId: params.id }, headers);
  },
};

/** The path and the query of a link, below the base address with `/v1`. */
function signArtifactLink(key: Buffer, linked: LinkedArtifact): string {
  const { id, name, expires, sha256 } = linked;
  const signature = computeSignature(key, linked).toString("base64url");
  const query = new URLSearchParams({ expires: String(expires), sha256, signature });
  return `/links/${id}/${name}?${query.toString()}`;
}

function isSignedLink(key: Buffer, linked: LinkedArtifact, signature: string): boolean {
  const expected = computeSignature(key, linked);
  const given = Buffer.from(signature, "base64url");
  return given.length === expected.length && timingSafeEqual(given, expected);
}

function computeSignature(key: Buffer, { id, name, expires, sha256 }: LinkedArtifact): Buffer {
  const text = ["artifact", id, name, sha256, expires].join("\n");
  return createHmac("sha256", key).update(text).digest();
}

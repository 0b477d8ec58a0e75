import { ServiceError } from "../contract/errors.ts";
import { artifactResponse } from "./artifact-response.ts";
import { isSignedLink, signArtifactLink } from "./artifact-link.ts";
import { notFoundError } from "./not-found-error.ts";
import type { RouteHandlers } from "./route-handlers.ts";

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

  async getLinkedArtifact({ records, blobs, now }, { params, query, headers }) {
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
    return artifactResponse(blobs, artifact, headers);
  },
};

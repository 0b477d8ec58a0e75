import { randomBytes } from "node:crypto";
import type { KeyObject } from "node:crypto";
import { jwtVerify } from "jose";
import { z } from "zod";
import { type Caller, notFound, type Operations, formatTime, refusal } from "./github-answer.ts";
import { type Addresses, userResource } from "./github-resources.ts";

/** An app that is installed in the repository. */
export interface InstalledApp extends Caller {
  readonly publicKey: KeyObject;
  readonly installation: number;
  /** The number of the repository that has its name now. */
  repository: number;
}

const tokenRequest = z.object({ repository_ids: z.array(z.int()).default([]) });
const noSuchRepository = refusal([
  {
    resource: "Installation",
    field: "repository_ids",
    code: "invalid",
    message: "No such repository",
  },
]);
const tokenMs = 3_600_000;
const permissions = { checks: "write", metadata: "read", contents: "read" };

/** The operations by which an app comes to a token of its installation. */
export function createApps(addresses: Addresses, app: InstalledApp | undefined) {
  const tokens = new Set<string>();
  const operations: Operations = {
    "apps/get-repo-installation": () =>
      app === undefined ? notFound : { status: 200, body: installationResource(addresses, app) },
    "apps/create-installation-access-token"({ params, body }) {
      if (params["installation_id"] !== String(app?.installation)) return notFound;
      const [repository = app?.repository] = tokenRequest.parse(body ?? {}).repository_ids;
      if (repository !== app?.repository) return noSuchRepository;
      const token = `ghs_${randomBytes(18).toString("hex")}`;
      tokens.add(token);
      const expiry = formatTime(new Date(Date.now() + tokenMs));
      return {
        status: 201,
        body: { token, expires_at: expiry, permissions, repository_selection: "selected" },
      };
    },
  };
  return {
    operations,
    hasMade: (token: string) => tokens.has(token),
    /** Whether a token is one that the app signed for itself just now. */
    async isSignedBy(token: string): Promise<boolean> {
      if (app === undefined) return false;
      const claims = {
        issuer: String(app.id),
        algorithms: ["RS256"],
        maxTokenAge: "10m",
        clockTolerance: "60s",
      };
      return jwtVerify(token, app.publicKey, claims).then(
        ({ payload: { exp = 0, iat = 0 } }) => exp - iat <= 660,
        () => false,
      );
    },
  };
}

function installationResource(addresses: Addresses, { id, slug, installation }: InstalledApp) {
  const url = `${addresses.api}/app/installations/${installation}`;
  return {
    id: installation,
    app_id: id,
    app_slug: slug,
    target_id: 1,
    target_type: "Organization",
    single_file_name: null,
    repository_selection: "selected",
    access_tokens_url: `${url}/access_tokens`,
    html_url: `${addresses.server}/organizations/acme/settings/installations/${installation}`,
    repositories_url: `${addresses.api}/installation/repositories`,
    events: ["check_run"],
    account: userResource(addresses, "acme"),
    permissions,
    created_at: "2026-01-01T00:00:00Z",
    updated_at: "2026-01-01T00:00:00Z",
    suspended_by: null,
    suspended_at: null,
  };
}

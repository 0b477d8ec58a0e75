import assert from "node:assert/strict";
import { hashSecret } from "../../src/auth/access-token.ts";
import { member } from "../../src/contract/people/member.ts";
import type { Role } from "../../src/contract/people/role.ts";
import type { TestApp } from "./test-app.ts";
import { ownPage } from "./test-sessions.ts";

export const issuer = "https://login.example";
export const singleSignOn = {
  issuer,
  clientId: "service",
  clientSecret: "secret",
  scopes: "openid",
  groupsClaim: "groups",
  publicUrl: "http://localhost",
};
let sessions = 0;

/** Signs somebody in whom the issuer names. @returns the person's id, and headers of requests */
export async function signInIssued(
  app: TestApp,
  { subject = "ada", email = null as string | null, groups = [] as string[] } = {},
) {
  const secret = `${subject}-${++sessions}`;
  const expiresAt = new Date(app.now().getTime() + 3_600_000).toISOString();
  const method = "single-sign-on" as const;
  const newSession = { hash: hashSecret(secret), browser: "", method, expiresAt };
  const person = { issuer, subject, name: subject, email, groups };
  const session = await app.records.sessions.beginIssued(person, newSession);
  const headers = { cookie: `mos-session-80=${secret}`, ...ownPage };
  return { id: session.personId, token: null, headers };
}

export async function setRole({ ask }: TestApp, name: string, role: Role, project = "default") {
  const path = `/v1/projects/${project}/members/${encodeURIComponent(name)}`;
  const answer = await ask(`PUT ${path}`, { body: { role } });
  assert.equal(answer.status, 200, await answer.clone().text());
  return member.parse(await answer.json());
}

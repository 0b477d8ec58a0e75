import assert from "node:assert/strict";
import test from "node:test";
import { parseClaims } from "../../src/auth/parse-claims.ts";
import { administratorId } from "../../src/contract/people/person.ts";
import type { Role } from "../../src/contract/people/role.ts";
import { self } from "../../src/contract/people/session.ts";
import { createdToken, type Scope } from "../../src/contract/people/token.ts";
import { makeTestApp, problemIn, startJob } from "./test-app.ts";
import { issuer, setRole, signInIssued, singleSignOn } from "./test-people.ts";
import { ownPage, signInTestPerson } from "./test-sessions.ts";

const compress = { model: { source: "https://models.example/m.onnx" }, target: "cpu" };
const newToken = (...scopes: Scope[]) => ({ name: "mine", scopes });

/** What a role may do, and may not. */
const calls: [string, unknown, Readonly<Record<Role, boolean>>][] = [
  ["GET /v1/jobs", undefined, { viewer: true, developer: true, admin: true }],
  ["POST /v1/compress", compress, { viewer: false, developer: true, admin: true }],
  ["POST /v1/tokens", newToken("jobs:read"), { viewer: false, developer: true, admin: true }],
  ["POST /v1/tokens", newToken("admin"), { viewer: false, developer: false, admin: true }],
  ["GET /v1/audit", undefined, { viewer: false, developer: false, admin: true }],
  ["GET /v1/projects/vision/members", undefined, { viewer: false, developer: false, admin: true }],
  ["GET /v1/projects", undefined, { viewer: false, developer: false, admin: false }],
  [
    "GET /v1/projects/default/members",
    undefined,
    { viewer: false, developer: false, admin: false },
  ],
];

for (const role of ["viewer", "developer", "admin"] as const) {
  test(`a person with the role ${role} may do what its scopes allow, in its project`, async (t) => {
    const app = await makeTestApp(t, { singleSignOn });
    await app.ask("PUT /v1/projects/vision");
    const { id } = await signInIssued(app);
    await setRole(app, id, role, "vision");
    const person = await signInIssued(app);
    for (const [call, body, allowed] of calls) {
      const answer = await app.ask(call, { ...person, body });
      assert.equal(answer.ok, allowed[role], `${call} ${answer.status}`);
    }
  });
}

test("a group's members have its role, and those of another issuer's group have not", async (t) => {
  const app = await makeTestApp(t, { singleSignOn });
  const added = await setRole(app, "group:ml/vision", "viewer");
  assert.deepEqual([added.member, added.issuer, added.person], ["group:ml/vision", issuer, null]);
  const inside = await signInIssued(app, { subject: "ada", groups: ["ml/vision", "others"] });
  const outside = await signInIssued(app, { subject: "bob", groups: ["ml"] });
  assert.equal((await app.ask("GET /v1/jobs", inside)).status, 200);
  assert.equal((await problemIn(await app.ask("GET /v1/jobs", outside))).code, "missing_scope");
  const later = await signInIssued(app, { subject: "ada", groups: [] });
  for (const headers of [inside, later]) {
    assert.equal((await app.ask("GET /v1/jobs", headers)).status, 403);
  }
});

test("who has no role can see that, and sign out", async (t) => {
  const app = await makeTestApp(t);
  const person = await signInIssued(app);
  const { role, projects, personId, scopes } = self.parse(
    await (await app.ask("GET /v1/self", person)).json(),
  );
  assert.deepEqual({ role, projects, scopes }, { role: null, projects: [], scopes: [] });
  assert.equal(personId, person.id);
  assert.equal((await app.ask("DELETE /v1/sessions/self", person)).status, 204);
});

test("what a removed member and the member's tokens may do ends, also open streams", async (t) => {
  const app = await makeTestApp(t);
  const person = await signInIssued(app);
  await setRole(app, person.id, "developer");
  const made = await app.ask("POST /v1/tokens", { ...person, body: newToken("jobs:read") });
  const { token, person: owner } = createdToken.parse(await made.json());
  assert.equal(owner?.id, person.id);
  const stream = await app.ask("GET /v1/events", person);
  const read = (async () => {
    for await (const _ of stream.body ?? []);
  })();
  assert.equal((await app.ask("GET /v1/jobs", { token })).status, 200);
  await app.ask(`DELETE /v1/projects/default/members/${person.id}`);
  assert.equal((await app.ask("GET /v1/jobs", person)).status, 403);
  const refused = await problemIn(await app.ask("GET /v1/jobs", { token }));
  assert.match(refused.detail, /ada, whose token it is, is not a member of "default"/);
  await read;
});

test("a token does no more than the person may now who made it", async (t) => {
  const app = await makeTestApp(t);
  const person = await signInIssued(app);
  await setRole(app, person.id, "admin");
  const made = await app.ask("POST /v1/tokens", { ...person, body: newToken("admin") });
  const { token } = createdToken.parse(await made.json());
  const second = await app.ask("POST /v1/tokens", { token, body: newToken("admin") });
  const { token: derived } = createdToken.parse(await second.json());
  await setRole(app, person.id, "viewer");
  for (const each of [token, derived]) {
    assert.equal((await app.ask("GET /v1/jobs", { token: each })).status, 200);
    assert.equal((await app.ask("GET /v1/tokens", { token: each })).status, 403);
  }
});

test("a developer sees and revokes only own tokens", async (t) => {
  const app = await makeTestApp(t);
  const person = await signInIssued(app);
  await setRole(app, person.id, "developer");
  const foreign = await app.ask("POST /v1/tokens", { body: newToken("jobs:read") });
  const { id } = createdToken.parse(await foreign.json());
  const mine = await app.ask("POST /v1/tokens", { ...person, body: newToken("jobs:read") });
  const own = createdToken.parse(await mine.json());
  const { tokens } = JSON.parse(await (await app.ask("GET /v1/tokens", person)).text());
  assert.deepEqual(
    tokens.map((token: { id: string }) => token.id),
    [own.id],
  );
  assert.equal((await app.ask(`DELETE /v1/tokens/${id}`, person)).status, 404);
  assert.equal((await app.ask(`POST /v1/tokens/${id}/rotate`, person)).status, 404);
  assert.equal((await app.ask(`DELETE /v1/tokens/${own.id}`, person)).status, 204);
});

test("a person acts in the project that is chosen, of those that are the person's", async (t) => {
  const app = await makeTestApp(t);
  const { id } = await startJob(app);
  for (const name of ["audio", "vision", "secret"]) await app.ask(`PUT /v1/projects/${name}`);
  const { id: personId } = await signInIssued(app);
  await setRole(app, personId, "viewer", "vision");
  await setRole(app, personId, "admin", "audio");
  const person = await signInIssued(app);
  const seen = self.parse(await (await app.ask("GET /v1/self", person)).json());
  assert.deepEqual(
    [seen.project, seen.projects],
    [
      "audio",
      [
        { name: "audio", role: "admin" },
        { name: "vision", role: "viewer" },
      ],
    ],
  );
  const choose = (project: string) =>
    app.ask("PUT /v1/sessions/self", { ...person, body: { project } });
  assert.equal((await choose("secret")).status, 404);
  assert.equal((await choose("vision")).status, 200);
  const { role } = self.parse(await (await app.ask("GET /v1/self", person)).json());
  assert.equal(role, "viewer");
  assert.equal((await app.ask(`GET /v1/jobs/${id}`, person)).status, 404);
});

test("the installation's administrator manages every project", async (t) => {
  const app = await makeTestApp(t, { singleSignOn });
  const headers = { ...(await signInTestPerson(app)), ...ownPage };
  const ask = (call: string, body?: unknown) => app.ask(call, { token: null, headers, body });
  assert.equal((await ask("PUT /v1/projects/vision")).status, 201);
  const path = "/v1/projects/vision/members/group:vision";
  assert.equal((await ask(`PUT ${path}`, { role: "developer" })).status, 200);
  assert.equal(
    (await ask("PUT /v1/projects/nothing/members/group:x", { role: "admin" })).status,
    404,
  );
  assert.equal((await ask("PUT /v1/sessions/self", { project: "vision" })).status, 200);
  assert.equal((await ask("GET /v1/audit")).status, 200);
  assert.equal((await ask(`DELETE ${path}`)).status, 204);
  assert.equal((await ask(`DELETE ${path}`)).status, 404);
});

test("a new link makes an administrator of the person again", async (t) => {
  const app = await makeTestApp(t);
  await signInTestPerson(app);
  await app.ask(`DELETE /v1/projects/default/members/${administratorId}`);
  const headers = await signInTestPerson(app);
  assert.equal((await app.ask("GET /v1/audit", { token: null, headers })).status, 200);
});

test("people are found by their whole address, which its issuer has checked", async (t) => {
  const app = await makeTestApp(t);
  const person = await signInIssued(app, { subject: "ada", email: "Ada@Example.com" });
  await signInIssued(app, { subject: "bob" });
  const find = async (email: string) => {
    const answer = await app.ask(`GET /v1/people?email=${encodeURIComponent(email)}`);
    const { people } = JSON.parse(await answer.text());
    return people.map(({ id }: { id: string }) => id);
  };
  assert.deepEqual(await find("ada@example.COM"), [person.id]);
  for (const other of ["ada@example", "%", "ada@example.com%"]) {
    assert.deepEqual(await find(other), [], other);
  }
  assert.equal((await app.ask("GET /v1/people?email=ada@example.com", person)).status, 403);
  const said = { sub: "eve", email: "ada@example.com", email_verified: false };
  assert.equal(parseClaims(said, { issuer, groupsClaim: "groups" }).email, null);
});

test("a group without a single sign-on is refused, and so is what is not a name", async (t) => {
  const { ask } = await makeTestApp(t);
  const put = (name: string) =>
    ask(`PUT /v1/projects/default/members/${name}`, { body: { role: "viewer" } });
  assert.match(
    (await problemIn(await put("group:x"))).errors?.[0]?.message ?? "",
    /single sign-on/,
  );
  assert.equal((await put("ada")).status, 404);
  assert.equal((await put("group:%00")).status, 404);
});

import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type RequestListener, type ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import path from "node:path";
import { text } from "node:stream/consumers";
import test, { type TestContext } from "node:test";
import { Agent } from "undici";
import { openServiceSession } from "../../src/action/service-client.ts";
import { listenLocally } from "../support/listen-locally.ts";
import { prepareStep } from "./prepare-step.ts";
import { type IdentityProvider, startIdentityProvider } from "./support/identity-provider.ts";
import { workflowEvents } from "./support/workflow-event.ts";

const audience = "https://mos.example.com";
const pullRequest = { event: workflowEvents.pullRequest };

/** Environment of a service that trusts workflows of the repository. */
async function trusting(
  t: TestContext,
  { issuer }: IdentityProvider,
): Promise<Record<string, string>> {
  const folder = await mkdtemp(path.join(tmpdir(), "policy-"));
  t.after(() => rm(folder, { recursive: true }));
  const file = path.join(folder, "trust.yaml");
  const claims = { repository_owner_id: 9919, repository_id: 1296269 };
  const scopes = ["jobs:read", "jobs:write", "models:write"];
  const policies = [{ name: "models", issuer, claims, scopes }];
  await writeFile(file, JSON.stringify({ issuers: [{ issuer, audience }], policies }));
  return { MOS_TRUST_POLICY_FILE: file };
}

test("a workflow without a secret exchanges its identity for a token, which nobody sees", async (t) => {
  const identity = await startIdentityProvider(t);
  const { run } = await prepareStep(t, { environment: await trusting(t, identity) });
  const end = await run(
    { token: "", audience },
    { ...pullRequest, environment: identity.environment },
  );
  assert.equal(end.code, 0, end.log);
  assert.deepEqual(identity.audiences, [audience]);
  const masked = end.commands
    .filter(({ command }) => command === "add-mask")
    .map(({ message }) => message);
  assert.ok(masked.some((secret) => secret.startsWith("mos_")));
  for (const secret of masked) assert.ok(!end.visibleLines.join("\n").includes(secret));
});

test("the audience is the service's address where none is given", async (t) => {
  const identity = await startIdentityProvider(t);
  const { service, run } = await prepareStep(t, { environment: await trusting(t, identity) });
  const { code } = await run({ token: "" }, { ...pullRequest, environment: identity.environment });
  assert.equal(code, 1);
  assert.deepEqual(identity.audiences, [service.baseUrl.replace(/\/v1$/, "")]);
});

test("an identity that no policy fits is refused with the claim and what to do", async (t) => {
  const identity = await startIdentityProvider(t);
  identity.claims["repository_id"] = "666";
  const { gitHub, run } = await prepareStep(t, { environment: await trusting(t, identity) });
  const { code, log } = await run(
    { token: "", audience },
    { ...pullRequest, environment: identity.environment },
  );
  assert.equal(code, 1);
  assert.match(log, /repository_id.*identity_token_refused.*administrator for a trust policy/s);
  assert.deepEqual(
    gitHub.checkRuns().map(({ conclusion }) => conclusion),
    ["failure"],
  );
});

/** A step's session with a server that answers as the service, by the identity of its workflow. */
async function prepareExchange(t: TestContext, answer: RequestListener) {
  const service = createServer(answer);
  const serviceUrl = await listenLocally(t, service);
  const identity = await startIdentityProvider(t);
  Object.assign(process.env, identity.environment);
  const dispatcher = new Agent();
  t.after(async () => {
    for (const name of Object.keys(identity.environment)) delete process.env[name];
    await dispatcher.close();
  });
  const open = () => openServiceSession({ audience }, { serviceUrl, dispatcher });
  return { service, identity, open };
}

function exchangedToken(name: string) {
  const expiresAt = new Date(Date.now() + 60 * 60_000).toISOString();
  return { token: name, expiresAt, scopes: ["jobs:read"] };
}

function answerJson(response: ServerResponse, body: unknown): void {
  response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(body));
}

test("an exchange whose connection breaks is made again, with another identity token", async (t) => {
  const tokens: string[] = [];
  const { open } = await prepareExchange(t, (request, response) => {
    void text(request).then((body) => {
      tokens.push(JSON.parse(body).token);
      if (tokens.length === 1) response.destroy();
      else answerJson(response, exchangedToken("mos_1"));
    });
  });
  assert.deepEqual((await open()).scopes, ["jobs:read"]);
  assert.equal(new Set(tokens).size, 2);
});

test("a token that is about to end is replaced by a new one while the step works", async (t) => {
  let exchanges = 0;
  const authorizations: (string | undefined)[] = [];
  const { service, open } = await prepareExchange(t, (request, response) => {
    if (request.url === "/v1/tokens/exchange") {
      answerJson(response, exchangedToken(`mos_${++exchanges}`));
      return;
    }
    authorizations.push(request.headers.authorization);
    answerJson(response, { targets: [] });
  });
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const { client } = await open();
  await client.call("listTargets", {});
  t.mock.timers.tick(54 * 60_000);
  await client.call("listTargets", {});
  const renewed = once(service, "request");
  t.mock.timers.tick(60_000);
  t.mock.timers.reset();
  await renewed;
  while (authorizations.at(-1) !== "Bearer mos_2") await client.call("listTargets", {});
  assert.deepEqual([...new Set(authorizations)], ["Bearer mos_1", "Bearer mos_2"]);
});

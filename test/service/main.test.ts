import { existsSync } from "node:fs";
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import { mkdir, mkdtemp, open, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import test, { type TestContext } from "node:test";
import { createClient } from "../../src/client/create-client.ts";
import { routes } from "../../src/contract/routes/routes.ts";
import { ipv6Missing } from "../support/ipv6-missing.ts";
import { startRunningService } from "../support/running-service.ts";
import { audience, startLocalIssuer } from "../auth/local-issuer.ts";
import { inheritedEnvironment } from "../support/inherited-environment.ts";

/** Root may enter every folder. */
const readsEverything = process.getuid?.() === 0;
const main = join(import.meta.dirname, "../../src/service/main.ts");

interface Ending {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs the command until it ends by itself. */
async function run(
  args: readonly string[],
  environment: Readonly<Record<string, string>>,
): Promise<Ending> {
  const child = spawn(process.execPath, [main, ...args], {
    env: { ...inheritedEnvironment(), ...environment },
  });
  let [stdout, stderr] = ["", ""];
  child.stdout.on("data", (chunk: Buffer) => (stdout += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => (stderr += chunk.toString()));
  const [code] = await once(child, "close");
  return { code, stdout, stderr };
}

async function temporaryFolder(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "main-"));
  t.after(() => rm(folder, { recursive: true }));
  return folder;
}

test("a port that is in use is said in one sentence, whatever it is for", async (t) => {
  const { baseUrl } = await startRunningService(t);
  const { port } = new URL(baseUrl);
  for (const ports of [{ MOS_PORT: port }, { MOS_PORT: "0", MOS_HEALTH_PORT: port }]) {
    const ended = await run([], { ...ports, MOS_DATA_DIR: await temporaryFolder(t) });
    assert.equal(ended.code, 1);
    const sentence = `Cannot listen on 127.0.0.1 port ${port}: the port is in use; choose another one\n`;
    assert.equal(ended.stderr, sentence);
  }
});

test("an address of the service with a path is refused, since its pages have none", async (t) => {
  const { code, stderr } = await run([], {
    MOS_PORT: "0",
    MOS_DATA_DIR: await temporaryFolder(t),
    MOS_PUBLIC_URL: "https://example.com/mos",
  });
  assert.equal(code, 1);
  assert.match(stderr, /MOS_PUBLIC_URL .* must be an address without a path/);
});

test(
  "it answers over IPv6 and IPv4 where it has every address",
  { skip: ipv6Missing },
  async (t) => {
    const { baseUrl } = await startRunningService(t, { environment: { MOS_HOST: "*" } });
    const { port } = new URL(baseUrl);
    for (const host of ["[::1]", "127.0.0.1"]) {
      assert.equal((await fetch(`http://${host}:${port}/healthz`)).status, 200, host);
    }
  },
);

test("a data folder that another service uses is said in one sentence", async (t) => {
  const { directory } = await startRunningService(t);
  const ended = await run([], { MOS_PORT: "0", MOS_DATA_DIR: directory });
  assert.equal(ended.code, 1);
  assert.equal(ended.stderr, `Another service uses the data directory "${directory}"\n`);
});

for (const state of ["is empty", "is missing"]) {
  test(`a database that ${state} beside stored files is refused, with the way back`, async (t) => {
    const folder = await temporaryFolder(t);
    const database = join(folder, "service.sqlite");
    if (state === "is empty") await writeFile(database, "");
    await mkdir(join(folder, "blobs", "ab"), { recursive: true });
    await writeFile(join(folder, "blobs", "ab", "ab12"), "a model");
    const command = ["token", "create", "--name", "ci", "--scopes", "jobs:read"];
    for (const args of [[], command]) {
      const ended = await run(args, { MOS_PORT: "0", MOS_DATA_DIR: folder });
      assert.equal(ended.code, 1);
      const place = `The database "${database}" ${state}, while "${join(folder, "blobs")}" has files`;
      assert.ok(ended.stderr.startsWith(place), ended.stderr);
      assert.match(ended.stderr, /restore a backup into an empty folder, by the command `restore`/);
    }
  });
}

test("a database that is damaged is named, with the way back and without a stack", async (t) => {
  const folder = await temporaryFolder(t);
  const database = join(folder, "service.sqlite");
  await writeFile(database, "no database".repeat(1000));
  const { code, stderr } = await run([], { MOS_PORT: "0", MOS_DATA_DIR: folder });
  assert.equal(code, 1);
  assert.ok(stderr.startsWith(`The database "${database}" is damaged`), stderr);
  assert.match(stderr, /file is not a database\): restore a backup into an empty folder/);
  assert.doesNotMatch(stderr, /\n\s+at /);
});

test("every setting that is wrong is named", async (t) => {
  const environment = { MOS_PORT: "http", MOS_WORKERS: "0", MOS_ALLOW_PRIVATE_ADDRESSES: "yes" };
  const ended = await run([], { ...environment, MOS_DATA_DIR: await temporaryFolder(t) });
  assert.equal(ended.code, 1);
  assert.deepEqual(ended.stderr.trimEnd().split("\n"), [
    "The settings are invalid",
    'MOS_PORT is "http" and must be a whole number of at most 15 digits',
    "MOS_WORKERS is 0 and must be at least 1",
    'MOS_ALLOW_PRIVATE_ADDRESSES is "yes" and must be "true" or "false"',
  ]);
});

test("every allowed folder that is not a folder, or cannot be read, is named", async (t) => {
  const folder = await temporaryFolder(t);
  const none = join(folder, "none");
  const file = join(folder, "file");
  const closed = join(folder, "closed");
  await writeFile(file, "");
  await mkdir(closed, { mode: 0 });
  const roots = [folder, none, file, closed].join(delimiter);
  const ended = await run([], { MOS_PORT: "0", MOS_DATA_DIR: folder, MOS_ALLOWED_ROOTS: roots });
  assert.equal(ended.code, 1);
  const sentence = (root: string, code: string) =>
    `MOS_ALLOWED_ROOTS has "${root}", which must be a folder that can be read (${code})`;
  assert.deepEqual(ended.stderr.trimEnd().split("\n"), [
    "The settings are invalid",
    sentence(none, "ENOENT"),
    sentence(file, "ENOTDIR"),
    ...(readsEverything ? [] : [sentence(closed, "EACCES")]),
  ]);
});

test("an address of the database that is wrong is not repeated, since it has a password", async () => {
  const ended = await run([], { MOS_DATABASE_URL: "mysql://mos:hidden@db.example/mos" });
  assert.equal(ended.code, 1);
  assert.match(ended.stderr, /^MOS_DATABASE_URL must be an address such as postgres:/m);
  assert.doesNotMatch(ended.stderr, /hidden/);
});

test("a variable that looks like a setting but is not is reported", async (t) => {
  const { directory } = await startRunningService(t);
  const ended = await run([], { MOS_PROT: "0", MOS_DATA_DIR: directory });
  assert.match(ended.stderr, /are not settings","names":\["MOS_PROT"\]/);
});

for (const args of [
  ["sign-in"],
  ["token", "create", "--name", "ci", "--scopes", "jobs:read"],
  ["project", "create", "team-a"],
]) {
  test(`the command "${args.join(" ")}" needs a service, and makes no folder`, async (t) => {
    const folder = join(await temporaryFolder(t), "data");
    const ended = await run(args, { MOS_DATA_DIR: folder });
    assert.equal(ended.code, 1);
    const advice = "set MOS_DATA_DIR and MOS_PORT to those of the service";
    assert.equal(ended.stderr, `No service has its data in "${folder}": ${advice}\n`);
    assert.equal(existsSync(folder), false);
  });
}

test("a file in place of the data directory is named, without a stack", async (t) => {
  const file = join(await temporaryFolder(t), "data");
  await writeFile(file, "");
  const ended = await run([], { MOS_PORT: "0", MOS_DATA_DIR: file });
  assert.equal(ended.code, 1);
  assert.match(ended.stderr, /^The data directory ".*data" cannot be used: EEXIST: [^\n]*\n$/);
  const command = await run(["sign-in"], { MOS_DATA_DIR: file });
  assert.match(command.stderr, /^No service has its data in ".*data": [^\n]*\n$/);
});

test(
  "a log that cannot be written, as on a full disk, does not end the service",
  { skip: process.platform !== "linux" && "there is no /dev/full" },
  async (t) => {
    await using full = await open("/dev/full", "w");
    const environment = { MOS_PORT: "0", MOS_DATA_DIR: await temporaryFolder(t), MOS_TYPO: "1" };
    const child = spawn(process.execPath, [main], {
      env: { ...inheritedEnvironment(), ...environment },
      stdio: ["ignore", "pipe", full.fd],
    });
    assert(child.stdout);
    const [chunk] = await Promise.race([once(child.stdout, "data"), once(child, "exit")]);
    assert.match(String(chunk), /^Listening on /);
    child.kill("SIGTERM");
    assert.deepEqual(await once(child, "exit"), [0, null]);
  },
);

test("--help prints the commands, and that of a command how it is called", async () => {
  const all = await run(["--help"], {});
  assert.equal(all.code, 0);
  for (const name of ["token", "project", "sign-in", "backup", "restore", "move"]) {
    assert.match(all.stdout, new RegExp(`^  ${name}( |$)`, "m"));
  }
  const backup = await run(["backup", "--help"], {});
  assert.deepEqual(
    [backup.code, backup.stdout.split("\n")[0]],
    [0, "Usage: backup [--keep=COUNT] FOLDER"],
  );
});

for (const [args, sentence] of [
  [["serve"], /^Command "serve" is not known$/m],
  [
    ["backup", "--to", "copy"],
    /^Option "--to" is not known\nUsage: backup \[--keep=COUNT\] FOLDER$/m,
  ],
  [["backup", "--keep=1", main], /^The folder ".*main.ts" cannot be used: EEXIST: [^\n]*\n$/],
  [["restore"], /^0 arguments were given, and 1 is expected\nUsage: restore FOLDER$/m],
  [["project", "create", "A B"], /^NAME is "A B" and must be 1 to 63 lower-case letters/m],
  [
    ["token", "create", "--name", "ci", "--scopes", "read", "--expires-days", "soon"],
    /^--scopes\[0\] is "read" and must be "jobs:read", .*\n--expires-days is "soon" and must be/m,
  ],
  [
    ["token", "create", "--name", "ci", "--scopes", "jobs:read", "--expires-days", "1.5"],
    /^--expires-days is 1.5 and must be an integer\nUsage: token create/,
  ],
  [["token", "create", "--name", "ci"], /^--scopes\[0\] is "" and must be "jobs:read", /],
  [["token", "create", "--days", "1"], /^Unknown option '--days'.*\nUsage: token create/],
] as const) {
  test(`the command "${args.join(" ")}" is refused, with how it is called`, async (t) => {
    const ended = await run(args, { MOS_DATA_DIR: await temporaryFolder(t) });
    assert.equal(ended.code, 1);
    assert.match(ended.stderr, sentence);
  });
}

test("the trust policy is read from a file, and what is not one is refused", async (t) => {
  const folder = await temporaryFolder(t);
  const file = join(folder, "trust.yaml");
  const issuer = await startLocalIssuer(t);
  const text = (claims: string) => `
issuers:
  - issuer: ${issuer.url}
    audience: ${audience}
policies:
  - name: main
    issuer: ${issuer.url}
    claims: { repository_owner_id: 45, repository_id: 123${claims} }
    scopes: [jobs:read]
`;
  await writeFile(file, text(", sub: repo:acme/models"));
  const wrong = await run([], { MOS_PORT: "0", MOS_DATA_DIR: folder, MOS_TRUST_POLICY_FILE: file });
  assert.equal(wrong.code, 1);
  assert.match(
    wrong.stderr,
    /^Trust policy ".*trust.yaml" cannot be used:\npolicies\[0\]\.claims\.sub is not known; the known ones are/,
  );

  await writeFile(file, text(", ref: refs/heads/main"));
  const { baseUrl } = await startRunningService(t, {
    environment: { MOS_TRUST_POLICY_FILE: file },
  });
  const now = Math.floor(Date.now() / 1000);
  const identityToken = await issuer.sign({ claims: { iat: now, nbf: now, exp: now + 300 } });
  const { token } = await createClient({ routes, baseUrl }).call("exchangeToken", {
    body: { token: identityToken },
  });
  assert.deepEqual(await createClient({ routes, baseUrl, token }).call("listJobs", {}), {
    jobs: [],
    nextCursor: null,
  });
});

test("a GitHub App whose file cannot be used is refused", async (t) => {
  const folder = await temporaryFolder(t);
  const file = join(folder, "github-app.yaml");
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const key = privateKey.export({ type: "pkcs1", format: "pem" });
  const refusals: [app: object | undefined, sentence: RegExp][] = [
    [undefined, /^GitHub App file ".*github-app.yaml" cannot be used: .*ENOENT/],
    [{ appId: 4711 }, /cannot be used:\nprivateKey is missing and must be a string$/m],
    [
      { appId: "compression", privateKey: "hidden" },
      /^appId is "compression" and must be an? .*\nprivateKey must be a private key in the form of PEM/m,
    ],
    [
      { appId: 4711, privateKey: key, webhookSecret: "" },
      /^webhookSecret must have at least 1 character$/m,
    ],
    [
      { appId: 4711, privateKey: key, apiUrl: "github" },
      /^apiUrl is "github" and must be an address/m,
    ],
  ];
  for (const [app, sentence] of refusals) {
    if (app !== undefined) await writeFile(file, JSON.stringify(app));
    const { code, stderr } = await run([], {
      MOS_PORT: "0",
      MOS_DATA_DIR: folder,
      MOS_GITHUB_APP_FILE: file,
      MOS_PUBLIC_URL: "https://mos.example",
    });
    assert.equal(code, 1);
    assert.match(stderr, sentence);
    assert.doesNotMatch(stderr, /hidden/);
  }
});

test("a trust policy by which another GitHub's workflows could write checks is refused", async (t) => {
  const folder = await temporaryFolder(t);
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const app = { appId: 4711, privateKey: privateKey.export({ type: "pkcs1", format: "pem" }) };
  await writeFile(join(folder, "app.yaml"), JSON.stringify(app));
  const issuer = "https://github.example.com/_services/token";
  const policy = {
    name: "enterprise",
    issuer,
    claims: { repository_owner_id: 9, repository_id: "*" },
    scopes: ["jobs:write", "reports:write"],
    report: { checkNames: "Model compression" },
  };
  const trust = { issuers: [{ issuer, audience }], policies: [policy] };
  await writeFile(join(folder, "trust.yaml"), JSON.stringify(trust));
  const { code, stderr } = await run([], {
    MOS_PORT: "0",
    MOS_DATA_DIR: folder,
    MOS_GITHUB_APP_FILE: join(folder, "app.yaml"),
    MOS_TRUST_POLICY_FILE: join(folder, "trust.yaml"),
    MOS_PUBLIC_URL: "https://mos.example",
  });
  assert.equal(code, 1);
  assert.equal(
    stderr.trim(),
    `Trust policy "enterprise" gives "reports:write" to workflows of the issuer "${issuer}", but ` +
      "the GitHub App writes to https://api.github.com, whose workflows have " +
      '"https://token.actions.githubusercontent.com"',
  );
});

test("a GitHub App and a single sign-on need the service's address", async (t) => {
  const folder = await temporaryFolder(t);
  for (const name of ["MOS_GITHUB_APP_FILE", "MOS_OIDC_FILE"]) {
    const file = join(folder, "file.yaml");
    const { code, stderr } = await run([], { MOS_DATA_DIR: folder, [name]: file });
    assert.equal(code, 1);
    assert.match(stderr, /needs MOS_PUBLIC_URL/);
  }
});

test("a wrong part of a setting in YAML is named", async (t) => {
  const environment = { MOS_QUOTAS: "{storedBytes: 1GB, requests: 5}" };
  const ended = await run([], { ...environment, MOS_DATA_DIR: await temporaryFolder(t) });
  assert.equal(ended.code, 1);
  assert.match(ended.stderr, /^MOS_QUOTAS\.storedBytes is "1GB" and must be/m);
  assert.match(ended.stderr, /^MOS_QUOTAS\.requests is not known; the known ones are waitingJobs/m);
});

test("targets are read from a file, and a file without valid ones is refused", async (t) => {
  const folder = await temporaryFolder(t);
  const file = join(folder, "targets.yaml");
  await writeFile(file, "targets:\n  - name: phone\n    scheme: int8\n");
  const wrong = await run([], { MOS_PORT: "0", MOS_DATA_DIR: folder, MOS_TARGETS_FILE: file });
  assert.equal(wrong.code, 1);
  assert.match(wrong.stderr, /^Targets file ".*targets.yaml" cannot be used:\n.*scheme/s);

  const phone = {
    name: "phone",
    description: "A phone",
    executionProvider: "cpu",
    operators: "standard",
    recipe: {},
  };
  await writeFile(file, JSON.stringify({ targets: [phone] }));
  const { client } = await startRunningService(t, { environment: { MOS_TARGETS_FILE: file } });
  assert.deepEqual((await client.call("listTargets", {})).targets, [{ ...phone, presets: {} }]);
});

test("the token command makes a token while the service runs", async (t) => {
  const { directory, baseUrl } = await startRunningService(t);
  const args = [
    "token",
    "create",
    "--name",
    "ci",
    "--scopes",
    "jobs:read,models:write",
    "--expires-days",
    "90",
  ];
  const { code, stdout } = await run(args, { MOS_DATA_DIR: directory });
  assert.equal(code, 0);
  const client = createClient({ routes, baseUrl, token: stdout.trim() });
  assert.deepEqual((await client.call("listJobs", {})).jobs, []);
  await assert.rejects(client.call("listTokens", {}), /missing_scope/);
});

for (const args of [
  ["token"],
  ["token", "create"],
  ["token", "create", "--name", "a", "--scopes", "all"],
]) {
  test(`the command "${args.join(" ")}" is answered with how to use it`, async (t) => {
    const { code, stdout, stderr } = await run(args, { MOS_DATA_DIR: await temporaryFolder(t) });
    assert.equal(code, 1);
    assert.equal(stdout, "");
    assert.match(stderr, /Usage: .*--name NAME --scopes SCOPE,SCOPE/);
  });
}

for (const signal of ["SIGTERM", "SIGINT"] as const) {
  test(`${signal} ends the service at once and in order`, async (t) => {
    const service = await startRunningService(t);
    const log = await fetch(`${service.baseUrl}/openapi.json`, {
      headers: { authorization: `Bearer ${service.token}` },
    });
    assert.equal(log.status, 200);
    service.process.kill(signal);
    assert.deepEqual(await once(service.process, "exit"), [0, null]);
  });
}

test("a second start needs no token and makes none", async (t) => {
  const first = await startRunningService(t);
  first.process.kill("SIGTERM");
  await once(first.process, "exit");
  const { client } = await startRunningService(t, { from: first });
  assert.equal((await client.call("listTokens", {})).tokens.length, 1);
});

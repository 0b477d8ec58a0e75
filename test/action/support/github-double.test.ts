import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import test, { type TestContext } from "node:test";
import { Octokit } from "@octokit/rest";
import { SignJWT } from "jose";
import { startGitHub } from "./github-double.ts";
import { type GitHubFault, gitHubFaults } from "./github-faults.ts";

const repository = { owner: "acme", repo: "models" };
const sha = "009b8a3a9ccbb128af87f9b1c0f4c62e8a304f6d";
const output = { title: "All well", summary: "Nothing to report" };

function createOctokit(gitHub: { readonly url: string; readonly token: string }): Octokit {
  return new Octokit({
    baseUrl: gitHub.url,
    auth: gitHub.token,
    log: { debug() {}, info() {}, warn() {}, error() {} },
  });
}

async function start(t: TestContext) {
  const gitHub = await startGitHub(t);
  return { gitHub, octokit: createOctokit(gitHub) };
}

function httpStatus(error: unknown): number {
  assert.ok(error instanceof Error && "status" in error);
  return Number(error.status);
}

test("a check run is created, updated and completed, and keeps all annotations", async (t) => {
  const { gitHub, octokit } = await start(t);
  const annotation = (line: number) => ({
    path: "batch.yaml",
    start_line: line,
    end_line: line,
    annotation_level: "failure" as const,
    message: "maxSizeRatio failed",
  });
  const lines = Array.from({ length: 70 }, (_, index) => annotation(index + 1));
  const { data: created } = await octokit.checks.create({
    ...repository,
    name: "compression",
    head_sha: sha,
    status: "in_progress",
    external_id: "b-1",
    output: { ...output, annotations: lines.slice(0, 50) },
  });
  await octokit.checks.update({
    ...repository,
    check_run_id: created.id,
    conclusion: "failure",
    output: { ...output, annotations: lines.slice(50) },
  });
  const [run] = gitHub.checkRuns();
  assert.deepEqual(
    [run?.status, run?.conclusion, run?.external_id, run?.output.annotations_count],
    ["completed", "failure", "b-1", 70],
  );
  const pages = await octokit.paginate(octokit.checks.listAnnotations, {
    ...repository,
    check_run_id: created.id,
  });
  assert.deepEqual(
    pages.map(({ start_line }) => start_line),
    lines.map(({ start_line }) => start_line),
  );
  const { data: found } = await octokit.checks.listForRef({
    ...repository,
    ref: sha,
    check_name: "compression",
  });
  assert.deepEqual([found.total_count, found.check_runs[0]?.id], [1, created.id]);
});

const check = { name: "compression", head_sha: sha };
const refused: readonly (readonly [string, Record<string, unknown>])[] = [
  ["without a name", { head_sha: sha }],
  ["with a misspelt property", { ...check, output: { ...output, anotations: [] } }],
  ["with an unknown property", { ...check, summary: "" }],
  ["without a title", { ...check, output: { summary: "" } }],
  [
    "with a summary of too many bytes",
    { ...check, output: { ...output, summary: "é".repeat(40_000) } },
  ],
  [
    "with a text of too many characters",
    { ...check, output: { ...output, text: "x".repeat(65_536) } },
  ],
  ["with an unknown conclusion", { ...check, conclusion: "succeeded" }],
  ["completed without a conclusion", { ...check, status: "completed" }],
  ["with what is not a time", { ...check, started_at: "yesterday" }],
  ["for what is not a commit", { ...check, head_sha: "refs/heads/main" }],
  [
    "with four actions",
    { ...check, actions: Array(4).fill({ label: "a", description: "a", identifier: "a" }) },
  ],
  [
    "with a long label",
    { ...check, actions: [{ label: "x".repeat(21), description: "a", identifier: "a" }] },
  ],
  [
    "with 51 annotations",
    {
      ...check,
      output: {
        ...output,
        annotations: Array(51).fill({
          path: "a",
          start_line: 1,
          end_line: 1,
          annotation_level: "notice",
          message: "a",
        }),
      },
    },
  ],
];

test("check runs that GitHub would not take are refused", async (t) => {
  const { gitHub, octokit } = await start(t);
  for (const [what, body] of refused) {
    const created = octokit.request("POST /repos/{owner}/{repo}/check-runs", {
      ...repository,
      ...body,
    } as never);
    await assert.rejects(created, (error) => httpStatus(error) === 422, what);
  }
  assert.deepEqual(gitHub.checkRuns(), []);
});

test("a comment is written, found and changed", async (t) => {
  const { gitHub, octokit } = await start(t);
  const issue = { ...repository, issue_number: 7 };
  for (let count = 0; count < 31; count++)
    await octokit.issues.createComment({ ...issue, body: `${count}` });
  const all = await octokit.paginate(octokit.issues.listComments, issue);
  const last = all.at(-1);
  await octokit.issues.updateComment({ ...repository, comment_id: last?.id ?? 0, body: "changed" });
  assert.equal(gitHub.comments(7)[30]?.body, "changed");
  await assert.rejects(
    octokit.issues.createComment({ ...issue, body: "x".repeat(65_537) }),
    (error) => {
      return httpStatus(error) === 422;
    },
  );
});

test("a token does no more than it is permitted to", async (t) => {
  const { gitHub, octokit } = await start(t);
  gitHub.permissions.checks = "read";
  await assert.rejects(
    octokit.checks.create({ ...repository, ...check }),
    /Resource not accessible by integration/,
  );
  await octokit.checks.listForRef({ ...repository, ref: sha });
  const stranger = createOctokit({ ...gitHub, token: "ghs_other" });
  await assert.rejects(stranger.checks.listForRef({ ...repository, ref: sha }), /Bad credentials/);
});

test("failures are ordered by a test, before or after the work", async (t) => {
  const { gitHub, octokit } = await start(t);
  const faults: readonly (readonly [GitHubFault, number])[] = [
    [gitHubFaults.secondaryLimit(1), 403],
    [gitHubFaults.primaryLimit(1), 403],
    [gitHubFaults.badGateway, 502],
    ["reset", 500],
  ];
  for (const [fault, status] of faults) {
    gitHub.fail({ operation: "checks/create", fault });
    await assert.rejects(
      octokit.checks.create({ ...repository, ...check }),
      (error) => httpStatus(error) === status,
    );
  }
  assert.equal(gitHub.checkRuns().length, 0);
  gitHub.fail({ fault: gitHubFaults.badGateway, isDone: true });
  await assert.rejects(
    octokit.checks.create({ ...repository, ...check }),
    (error) => httpStatus(error) === 502,
  );
  assert.equal(gitHub.checkRuns().length, 1);
});

test("an app gets a token for its installation, and may not change another app's check runs", async (t) => {
  const { publicKey, privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const app = {
    id: 4711,
    slug: "model-optimization",
    installation: 12,
    repository: 123,
    publicKey,
  };
  const gitHub = await startGitHub(t, { app });
  const jwt = await new SignJWT()
    .setProtectedHeader({ alg: "RS256" })
    .setIssuer("4711")
    .setIssuedAt()
    .setExpirationTime("9m")
    .sign(privateKey);
  const signed = createOctokit({ url: gitHub.url, token: jwt });
  const { data: installation } = await signed.apps.getRepoInstallation(repository);
  const { data } = await signed.apps.createInstallationAccessToken({
    installation_id: installation.id,
  });
  const own = createOctokit({ url: gitHub.url, token: data.token });
  const { data: created } = await own.checks.create({
    ...repository,
    ...check,
    details_url: "https://mos.example/b",
  });
  assert.equal(created.details_url, "https://mos.example/b");
  await assert.rejects(
    createOctokit(gitHub).checks.update({
      ...repository,
      check_run_id: created.id,
      conclusion: "success",
    }),
    /Invalid app_id/,
  );
});

test("the last common commit of two is found, also under the root of GitHub Enterprise Server", async (t) => {
  const gitHub = await startGitHub(t, { root: "/api/v3" });
  gitHub.mergeBases.set(`main...${sha}`, sha);
  const { data } = await createOctokit(gitHub).repos.compareCommitsWithBasehead({
    ...repository,
    basehead: `main...${sha}`,
  });
  assert.equal(data.merge_base_commit.sha, sha);
  assert.match(gitHub.url, /\/api\/v3$/);
});

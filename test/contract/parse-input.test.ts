import assert from "node:assert/strict";
import test from "node:test";
import { z } from "zod";
import { batchRequest } from "../../src/contract/batches/batch.ts";
import { formatProblem } from "../../src/contract/format-problem.ts";
import { jobRequest } from "../../src/contract/jobs/job.ts";
import { manifest } from "../../src/contract/models/manifest.ts";
import { parseInput } from "../../src/contract/parse-input.ts";
import { projectName } from "../../src/contract/project.ts";
import { routes } from "../../src/contract/routes/routes.ts";
import { sourceCredentials } from "../../src/contract/models/source-credentials.ts";
import { exchangeRequest, tokenRequest } from "../../src/contract/people/token.ts";
import { trustPolicy } from "../../src/contract/people/trust-policy.ts";
import { webhookRequest } from "../../src/contract/deliveries/webhook.ts";

const job = { model: { source: "https://models.example/a.onnx" }, target: "cpu" };
const token = { name: "ci", scopes: ["jobs:read"] };
const source = "https://models.example/a.onnx";

const cases: readonly [what: string, schema: z.ZodType, input: unknown, problems: string[]][] = [
  ["no body", jobRequest, undefined, ["is missing and must be an object"]],
  ["a list", jobRequest, [], ["is an array and must be an object"]],
  ["a missing field", jobRequest, { model: job.model }, ["target is missing and must be a string"]],
  ["another type", jobRequest, { ...job, target: 5 }, ["target is 5 and must be a string"]],
  [
    "an object",
    jobRequest,
    { ...job, dryRun: {} },
    ["dryRun is an object and must be true or false"],
  ],
  ["null", jobRequest, { ...job, name: null }, ["name is null and must be a string"]],
  [
    "an empty text",
    jobRequest,
    { ...job, name: "" },
    ['name is "" and must have 1 to 200 characters'],
  ],
  [
    "a text that is too long",
    tokenRequest,
    { ...token, name: "n".repeat(101) },
    [`name is "${"n".repeat(79)}…" and must have at most 100 characters`],
  ],
  [
    "another form",
    jobRequest,
    { ...job, target: "CPU" },
    [
      'target is "CPU" and must be 1 to 63 lower-case letters, digits and hyphens, with no hyphen at an end',
    ],
  ],
  [
    "hidden characters",
    projectName,
    "a\u202eb",
    [
      'is "a\u{fffd}b" and must be 1 to 63 lower-case letters, digits and hyphens, with no hyphen at an end',
    ],
  ],
  [
    "an unknown choice",
    webhookRequest,
    { url: "https://a.example", events: ["job.done"] },
    [
      'events[0] is "job.done" and must be "job.*", "batch.*", "job.pending", "job.sharding", "job.optimizing", "job.completed", "job.failed", "job.cancelling", "job.cancelled", "batch.pending", "batch.running", "batch.completed", "batch.failed", "batch.cancelling" or "batch.cancelled"',
    ],
  ],
  [
    "a number that is too small",
    jobRequest,
    { ...job, deadlineSeconds: -1, gates: { maxSizeRatio: 0, minTop1: 2 } },
    [
      "gates.maxSizeRatio is 0 and must be more than 0",
      "gates.minTop1 is 2 and must be at most 1",
      "deadlineSeconds is -1 and must be at least 1",
    ],
  ],
  [
    "a fraction",
    jobRequest,
    { ...job, deadlineSeconds: 1.5 },
    ["deadlineSeconds is 1.5 and must be an integer"],
  ],
  [
    "unknown fields",
    manifest,
    { files: [], file: "a", "b c": 1 },
    [
      "files has 0 entries and must have at least 1 entry",
      "file is not known; the known ones are files",
      "b c is not known; the known ones are files",
    ],
  ],
  [
    "a label",
    jobRequest,
    { ...job, labels: { "a b": "x", team: "a b" } },
    [
      "labels.a b as a key must be 1 to 63 '/', letters, digits, '.', '_' and '-', with a letter or digit at each end",
      `labels.team is "a b" and must be 0 to 63 letters, digits, '.', '_' and '-', with a letter or digit at each end`,
    ],
  ],
  [
    "a rule over several fields",
    batchRequest,
    {
      models: [{ source }],
      targets: ["cpu"],
      recipe: { scheme: "int4-weight", granularity: "tensor" },
    },
    ['recipe.granularity is "tensor" and must be block for the scheme int4-weight'],
  ],
  [
    "a list with a value twice",
    batchRequest,
    { models: [{ source }], targets: ["cpu", "cpu"] },
    ["targets must not name a target twice"],
  ],
  [
    "one of several types",
    trustPolicy.shape.policies.element.shape.claims,
    { repository_owner_id: "acme", repository_id: [1, "b"], event_name: {} },
    [
      'repository_owner_id is "acme" and must be a number or an array',
      'repository_id[1] is "b" and must be a number, or * for all',
      "event_name is an object and must be a string or a number or true or false or an array",
    ],
  ],
  [
    "a token",
    exchangeRequest,
    { token: "t".repeat(20_000) },
    ["token must have at most 16384 characters"],
  ],
  ["no token", exchangeRequest, {}, ["token is missing and must be a string"]],
  [
    "a text in place of an array",
    tokenRequest,
    { name: "ci", scopes: "jobs:read" },
    ['scopes is "jobs:read" and must be an array'],
  ],
  [
    "an unknown field if there are none",
    z.strictObject({}),
    { dry: 1 },
    ["dry is not known; none is"],
  ],
  [
    "a secret of a file",
    sourceCredentials,
    { s3: [{ bucket: "b", accessKeyId: "hidden", secretAccessKey: 12345 }] },
    ["s3[0].secretAccessKey must be a string"],
  ],
  [
    "an address with a signature",
    z.enum(["none"]),
    "https://user:hidden@models.example/m.onnx?signature=hidden",
    ['is "https://models.example/m.onnx?signature=***" and must be "none"'],
  ],
];

for (const [what, schema, input, problems] of cases) {
  test(`parseInput() says of ${what} what was found and what is allowed`, () => {
    assert.deepEqual(parseInput(schema, input).problems?.map(formatProblem), problems);
  });
}

const wrongValues: readonly unknown[] = [
  null,
  true,
  -1,
  1.5,
  "",
  "\u{1f600} ä",
  "x".repeat(20_000),
  [],
  [null],
  {},
  { unknown: 1 },
];

for (const [name, route] of Object.entries(routes)) {
  const body = "body" in route ? route.body : undefined;
  if (!(body instanceof z.ZodObject)) continue;
  test(`the body of ${name} is refused in words, not in those of the library`, () => {
    for (const field of Object.keys(body.shape)) {
      for (const value of wrongValues) {
        const { problems = [] } = parseInput(body, { [field]: value });
        for (const problem of problems) {
          const text = formatProblem(problem);
          assert.match(text, /must |is not known; the known ones are /, text);
          assert.doesNotMatch(text, /Invalid|expected|must match|must have another form/, text);
        }
      }
    }
  });
}

import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import { batchCheckName, jobCheckRun } from "../../src/github/check-run-requests.ts";
import type { Job } from "../../src/contract/jobs/job.ts";
import { buildAnnotations } from "../../src/report/build-annotations.ts";
import { conclude } from "../../src/report/conclude.ts";
import { githubLimits } from "../../src/report/markdown.ts";
import {
  renderBatchCheck,
  renderComment,
  renderJobSummary,
} from "../../src/report/render-batch.ts";
import type { EndedRow } from "../../src/report/report.ts";
import { modelDiffSections } from "../../src/report/model-diff-section.ts";
import { renderJobCheck } from "../../src/report/render-job.ts";
import { gateMissed, jobFailed, makeReport, makeRow } from "./make-report.ts";
import { makeCompletedJob } from "../support/make-job.ts";

/** Any text, with what Markdown and terminals take for something else and with halves of characters. */
const anyText = fc.oneof(
  fc.string({ unit: "binary", maxLength: 300 }),
  fc.string({
    unit: fc.constantFrom(
      "|",
      "`",
      "\\",
      "\n",
      "<!--",
      "@me",
      "🧪",
      "\ud83e",
      "\u202e",
      "::error::",
    ),
    maxLength: 200,
  }),
);

/** A job whose model differs from its baseline's in parts of any names. */
const anyChangedJob: fc.Arbitrary<Partial<Job>> = anyText.map((name) => {
  const job = makeCompletedJob();
  const counts = { added: 1, removed: 0, changed: 1, renamed: 0, same: 3 };
  const modelDiff = {
    values: [{ what: "input" as const, name, before: name, after: null }],
    nodes: counts,
    weights: counts,
    nodeChanges: [
      { how: "added" as const, name, op: name, what: [], from: [name, "x"], to: [`${name}y`] },
    ],
    weightChanges: [
      { how: "changed" as const, name, before: name, after: name, distance: 0.031 },
      { how: "added" as const, name, before: null, after: name, distance: null },
    ],
  };
  const baseline = { jobId: job.id, sha: "a".repeat(40), branch: name, by: "branch" as const };
  return { telemetry: { ...job.telemetry, modelDiff }, baseline };
});

const anyJob: fc.Arbitrary<Partial<Job>> = fc.oneof(
  fc.constant({}),
  anyChangedJob,
  fc.constant(gateMissed),
  fc.constant({ status: "Cancelled" as const }),
  fc.constant({ status: "Sharding" as const }),
  anyText.map((message) => ({ ...jobFailed, error: { code: "model_invalid" as const, message } })),
);

const anyReport = fc
  .record({
    name: anyText,
    jobs: fc.array(fc.tuple(anyText, anyText, anyJob), { minLength: 1, maxLength: 12 }),
    repeats: fc.constantFrom(1, 3, 150),
  })
  .map(({ name, jobs, repeats }) => {
    const rows = jobs.map(([model, target, job]) =>
      makeRow({ model: { ...makeCompletedJob().model, name: model }, target, ...job }),
    );
    return makeReport(Array.from({ length: repeats }, () => rows).flat(), { name });
  });

/** Rows of tables have as many cells as their heads, or a browser shows them as something else. */
function assertTables(markdown: string): void {
  let columns = 0;
  for (const line of markdown.split("\n")) {
    const cells = line.startsWith("|") ? line.split("|").length : 0;
    if (columns > 0 && cells > 0) assert.equal(cells, columns, line);
    columns = cells;
  }
}

test("reports of any names and sizes are within GitHub's limits, and their tables hold", () => {
  fc.assert(
    fc.property(anyReport, (report) => {
      const verdict = conclude(report, "gates");
      const { title, summary, text } = renderBatchCheck(report, verdict);
      const sized: readonly (readonly [string, number])[] = [
        [title, githubLimits.checkTitleBytes],
        [summary, githubLimits.checkFieldBytes],
        [text, githubLimits.checkFieldBytes],
        [renderJobSummary(report, verdict), githubLimits.jobSummaryBytes],
        [
          renderComment(report, verdict, { marker: "<!-- marker -->", sha: "1234567" }),
          githubLimits.commentBytes,
        ],
      ];
      for (const [markdown, maxBytes] of sized) {
        assert.ok(Buffer.byteLength(markdown) <= maxBytes);
        assert.ok(markdown.isWellFormed());
        assertTables(markdown);
      }
    }),
    { numRuns: 60 },
  );
});

test("a job's report is within GitHub's limits, however long its output", () => {
  const anyOutput = fc.array(
    fc.oneof(anyText, fc.constant("x".repeat(65_536)), fc.constant("`".repeat(5_000))),
    {
      maxLength: 400,
    },
  );
  fc.assert(
    fc.property(anyText, anyOutput, (name, output) => {
      const row = makeRow({ ...gateMissed, target: name }) as EndedRow;
      const { title, summary, text } = renderJobCheck(row, "failure", output);
      assert.ok(Buffer.byteLength(title) <= githubLimits.checkTitleBytes);
      for (const markdown of [summary, text]) {
        assert.ok(Buffer.byteLength(markdown) <= githubLimits.checkFieldBytes);
        assert.ok(markdown.isWellFormed());
      }
    }),
    { numRuns: 60 },
  );
});

test("names of check runs are within GitHub's limit, and say which job it is", () => {
  const checkName = batchCheckName("größer ".repeat(28), true);
  const model = { ...makeCompletedJob().model, name: "m".repeat(100) };
  const row = makeRow({ model, target: "t".repeat(63) }) as EndedRow;
  const { name } = jobCheckRun(row, [], { checkName, failOn: "gates" });
  for (const each of [checkName, name]) {
    assert.ok(Buffer.byteLength(each) <= githubLimits.checkNameBytes, each);
  }
  assert.match(checkName, /^größer .* \(dry run\)$/);
  assert.match(name, /^größer .*: m{100} for t{63}$/);
});

test("what models and branches are called is no markup in the title of a fold", () => {
  const counts = { added: 0, removed: 0, changed: 1, renamed: 0, same: 3 };
  const [name, branch] = ["</summary><img src=x> @me\n\n# big", "fix/<b>&'größer'"];
  const telemetry = {
    modelDiff: {
      values: [{ what: "opset" as const, name, before: null, after: "<i>" }],
      nodes: counts,
      weights: counts,
      nodeChanges: [],
      weightChanges: [],
    },
  };
  const { telemetry: measured, id: jobId } = makeCompletedJob();
  const baseline = { jobId, sha: "a".repeat(40), branch, by: "branch" as const };
  const job = { telemetry: { ...measured, ...telemetry }, baseline };
  const [section] = modelDiffSections(job);
  const [, title = ""] = /^<details>\n<summary>(.*)<\/summary>\n/.exec(section?.head ?? "") ?? [];
  assert.deepEqual(title.match(/<[^>]*>/g), ["<code>", "</code>"]);
  assert.doesNotMatch(title, /@/);
  assert.match(title, /größer/);
});

test("a table that is too long ends behind a row and says how many more there are", () => {
  const rows = Array.from({ length: 2000 }, (_, i) => makeRow({ target: `target-${i}` }));
  const { summary } = renderBatchCheck(makeReport(rows), {
    conclusion: "success",
    title: "2000 jobs passed",
  });
  const shown = summary.match(/^\| `recognition` .*\|$/gm)?.length ?? 0;
  const more = /^(\d+) more, see https:\S+$/m.exec(summary)?.[1];
  assert.ok(shown > 100);
  assert.equal(shown + Number(more), 2000);
});

test("annotations are bounded in number, models that failed first", () => {
  const place = { file: "batch.yaml", line: 3 };
  const rows = [...Array.from({ length: 300 }, () => makeRow(gateMissed)), makeRow(jobFailed)];
  const annotations = buildAnnotations(rows, {
    models: [{ model: "recognition", ...place }],
    gates: [{ gate: "maxSizeRatio", ...place, line: 7 }],
  });
  assert.equal(annotations.length, 200);
  assert.deepEqual(annotations[0], {
    place,
    level: "failure",
    title: "recognition for cpu failed",
    message: "The file is not an ONNX model",
  });
  assert.deepEqual(annotations[1]?.place.line, 7);
});

test("what a model says of itself is no markup in a title", () => {
  const message = "No input ![x](https://tracker.example/p.png) @acme/everyone www.example.com";
  const error = { code: "model_invalid" as const, message };
  const report = makeReport([makeRow({ ...jobFailed, error })]);
  const verdict = conclude(report, "gates");
  for (const markdown of [
    renderJobSummary(report, verdict),
    renderComment(report, verdict, { marker: "", sha: "" }),
  ]) {
    const outsideOfCode = markdown.replaceAll(/(`+)[^`]+\1/g, "");
    assert.doesNotMatch(outsideOfCode, /tracker|@acme|www/);
    assert.match(markdown, /tracker/);
  }
});

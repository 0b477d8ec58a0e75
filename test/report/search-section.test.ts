import assert from "node:assert/strict";
import test from "node:test";
import { searchSections } from "../../src/report/search-section.ts";
import { makeCompletedJob } from "../support/make-job.ts";

test("a job's check run has what a search ran and the weights that hurt most, a worker's words as code", () => {
  const { telemetry } = makeCompletedJob();
  const point = { cosine: 0.999, top1Agreement: 1 };
  const search = {
    reached: true,
    missed: [],
    outOfBudget: false,
    data: "generated" as const,
    samples: 16,
    candidates: 40,
    seconds: 12,
    points: [
      { ...point, bytes: 1_460_000, sqnrDb: 30.16, predictedSqnrDb: 29.75, chosen: true },
      { ...point, bytes: 1_770_000, sqnrDb: 24.7, form: "int8-weight per channel", chosen: false },
    ],
    mostSensitive: [{ name: "head", form: "[int8](https://tracker.example) | @me", sqnrDb: 31.3 }],
  };
  const sections = searchSections(makeCompletedJob({ telemetry: { ...telemetry, search } }));
  assert.deepEqual(
    sections.flatMap(({ rows }) => rows),
    [
      "| ➡️ | 1.46 MB | 30.2 dB | 29.8 dB |  |",
      "|  | 1.77 MB | 24.7 dB |  | `int8-weight per channel` |",
      "| `head` | `[int8](https://tracker.example) ¦ @me` | 31.3 dB |",
    ],
  );
  assert.deepEqual(searchSections(makeCompletedJob()), []);
});

test("a language model's search shows perplexities and divergences", () => {
  const { telemetry } = makeCompletedJob();
  const search = {
    reached: true,
    missed: [],
    outOfBudget: false,
    data: "builtin" as const,
    samples: 4,
    candidates: 160,
    seconds: 240,
    points: [
      {
        bytes: 113_900_000,
        sqnrDb: 14.2,
        cosine: 0.98,
        top1Agreement: 0.9,
        predictedKlDivergence: 0.0712,
        klDivergence: 0.0698,
        perplexityRatio: 1.0641,
        chosen: true,
      },
    ],
    mostSensitive: [{ name: "head", form: "int4-weight in blocks of 32", klDivergence: 0.0684 }],
  };
  const sections = searchSections(makeCompletedJob({ telemetry: { ...telemetry, search } }));
  assert.deepEqual(
    sections.flatMap(({ rows }) => rows),
    [
      "| ➡️ | 114 MB | 1.064 | 0.0698 nats | 0.0712 nats |  |",
      "| `head` | `int4-weight in blocks of 32` | 0.0684 nats |",
    ],
  );
});

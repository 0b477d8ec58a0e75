import { setTimeout as delay } from "node:timers/promises";
import type { Annotation } from "../report/annotations.ts";
import type { Conclusion } from "../report/conclude.ts";
import { limits } from "../report/limits.ts";
import type { CheckOutput } from "../report/report.ts";
import { type GitHub, statusOf } from "./connect-github.ts";

const tries = 3;
const pauseMs = 2_000;

/** What a check run shows. */
export interface CheckContent {
  readonly output: CheckOutput;
  /** Without it the check run is in progress. */
  readonly conclusion?: Conclusion;
  readonly annotations?: readonly Annotation[];
}

interface CheckSuite {
  /** `owner/name`. */
  readonly repository: string;
  readonly headSha: string;
  readonly detailsUrl: string;
}

interface CheckIdentity {
  readonly name: string;
  /** Tells the check run from those of other runs. */
  readonly externalId: string;
}

export type CheckRuns = ReturnType<typeof checkRunsOf>;

/** Writes check runs of one commit. */
export function checkRunsOf(github: GitHub, { repository, headSha, detailsUrl }: CheckSuite) {
  const [owner = "", repo = ""] = repository.split("/");

  async function create(identity: CheckIdentity, content: CheckContent): Promise<number> {
    const [first, ...others] = bodiesOf(content);
    const id = await createOnce(identity, first);
    for (const body of others) await github.rest.checks.update({ owner, repo, check_run_id: id, ...body });
    return id;
  }

  /** An answer that was lost may leave a check run, which must not be made again. */
  async function createOnce({ name, externalId }: CheckIdentity, body: CheckBody | undefined): Promise<number> {
    const identity = { owner, repo, name, head_sha: headSha, external_id: externalId, details_url: detailsUrl };
    for (let left = tries - 1; ; left--) {
      try {
        const { data } = await github.rest.checks.create({ ...identity, ...body, request: { retries: 0 } });
        return data.id;
      } catch (error) {
        if ((statusOf(error) ?? 0) < 500 || left === 0) throw error;
      }
      await delay(pauseMs);
      const made = await find({ name, externalId });
      if (made !== undefined) return made;
    }
  }

  async function find({ name, externalId }: CheckIdentity): Promise<number | undefined> {
    const { data } = await github.rest.checks.listForRef({
      owner,
      repo,
      ref: headSha,
      check_name: name,
      filter: "all",
    });
    return data.check_runs.find(({ external_id }) => external_id === externalId)?.id;
  }

  async function update(id: number, content: CheckContent): Promise<void> {
    for (const body of bodiesOf(content)) {
      await github.rest.checks.update({ owner, repo, check_run_id: id, ...body });
    }
  }

  return { create, update };
}

type CheckBody = ReturnType<typeof bodiesOf>[number];

/** Requests that together tell the content: each takes so many annotations, and the last one completes the check run. */
function bodiesOf({ output, conclusion, annotations = [] }: CheckContent) {
  const chunks = [];
  for (let i = 0; i === 0 || i < annotations.length; i += limits.annotations) {
    chunks.push(annotations.slice(i, i + limits.annotations));
  }
  return chunks.map((chunk, i) => ({
    ...(conclusion && i === chunks.length - 1
      ? { status: "completed" as const, conclusion }
      : { status: "in_progress" as const }),
    output: { ...output, annotations: chunk.map(annotationBody) },
  }));
}

function annotationBody({ place, level, title, message }: Annotation) {
  return {
    path: place.file,
    start_line: place.line,
    end_line: place.line,
    annotation_level: level,
    title,
    message,
  };
}

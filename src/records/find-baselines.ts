import {
  type Baseline,
  type RecordedBaseline,
  recordedBaseline,
} from "../contract/jobs/baseline.ts";
import type { Revision } from "../contract/revision.ts";
import type { WriteTransaction } from "./store.ts";

interface Suite {
  readonly project: string;
  readonly suite: string;
}

interface SuiteBranch extends Suite, Pick<RecordedBaseline, "branch"> {}

/** Jobs for the same model and target are compared. */
interface ModelForTarget {
  readonly model: { readonly name: string };
  readonly target: { readonly name: string };
}

/** The baseline of each of the new jobs, in their order. */
export async function findBaselines(
  writing: WriteTransaction,
  { base, ...suite }: Suite & Pick<Revision, "base">,
  newJobs: readonly ModelForTarget[],
): Promise<(Baseline | null)[]> {
  if (base === undefined) return newJobs.map(() => null);
  const branch = { ...suite, branch: base.branch };
  const [baseBaselines, mergeBaseBaselines] = await Promise.all([
    listCommitBaselines(writing, branch, base.sha),
    listCommitBaselines(writing, branch, base.mergeBase),
  ]);
  const baselines: (Baseline | null)[] = [];
  for (const newJob of newJobs) {
    const key = baselineKey(newJob.model.name, newJob.target.name);
    const [atBase, atMergeBase] = [baseBaselines.get(key), mergeBaseBaselines.get(key)];
    if (atBase) baselines.push({ ...atBase, by: "baseSha" });
    else if (atMergeBase) baselines.push({ ...atMergeBase, by: "mergeBase" });
    else baselines.push(await findNewestBaseline(writing, branch, newJob));
  }
  return baselines;
}

/** Those that were recorded for the branch: its workflows alone can record any. */
async function listCommitBaselines(
  { trx }: WriteTransaction,
  { project, suite, branch }: SuiteBranch,
  sha: string | undefined,
): Promise<ReadonlyMap<string, RecordedBaseline>> {
  if (sha === undefined) return new Map();
  const rows = await trx
    .selectFrom("baselines")
    .select(["model", "target", "document"])
    .where("project", "=", project)
    .where("suite", "=", suite)
    .where("sha", "=", sha)
    .where("branch", "=", branch)
    .orderBy("job_id")
    .execute();
  return new Map(
    rows.map(({ model, target, document }) => [
      baselineKey(model, target),
      parseBaseline(document),
    ]),
  );
}

async function findNewestBaseline(
  { trx }: WriteTransaction,
  { project, suite, branch }: SuiteBranch,
  { model, target }: ModelForTarget,
): Promise<Baseline | null> {
  const row = await trx
    .selectFrom("baselines")
    .select("document")
    .where("project", "=", project)
    .where("suite", "=", suite)
    .where("model", "=", model.name)
    .where("target", "=", target.name)
    .where("branch", "=", branch)
    .orderBy("job_id", "desc")
    .limit(1)
    .executeTakeFirst();
  return row === undefined ? null : { ...parseBaseline(row.document), by: "branch" };
}

function parseBaseline(document: string): RecordedBaseline {
  return recordedBaseline.parse(JSON.parse(document));
}

/** Names of models and targets contain no slash. */
function baselineKey(model: string, target: string): string {
  return `${model}/${target}`;
}

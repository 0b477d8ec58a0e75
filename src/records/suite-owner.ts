import type { Store, WriteTransaction } from "./store.ts";

export interface Suite {
  readonly project: string;
  readonly suite: string;
}

/** Where something that records baselines comes from. */
export interface BatchSource {
  /** Of the workflow that asked for it. */
  readonly repository: string | null;
  /** Whether it is a resource of a cluster that no request created. */
  readonly isResource: boolean;
}

/** A suite's repository: null where no workflow recorded it first, undefined where nobody did. */
export async function findSuiteRepository(
  db: Store["db"],
  { project, suite }: Suite,
): Promise<string | null | undefined> {
  const row = await db
    .selectFrom("suites")
    .select("repository_id")
    .where("project", "=", project)
    .where("name", "=", suite)
    .executeTakeFirst();
  return row?.repository_id;
}

/** Makes a suite without baselines the repository's. Gives whose it is then. */
export async function claimSuite(
  { trx }: WriteTransaction,
  { project, suite }: Suite,
  repository: string | null,
): Promise<string | null> {
  await trx
    .insertInto("suites")
    .values({ project, name: suite, repository_id: repository })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
  return (await findSuiteRepository(trx, { project, suite })) ?? null;
}

/**
 * Whether a batch records baselines in a suite that was claimed. Who writes resources has no scope
 * that says for which repositories: a resource does so only where the suite belongs to none.
 */
export function recordsInSuite(
  { repository, isResource }: BatchSource,
  suiteRepository: string | null,
): boolean {
  return isResource ? suiteRepository === null : reachesSuite(repository, suiteRepository);
}

/** Whether something of a repository, or of none, reaches the suite of another. */
export function reachesSuite(
  repository: string | null,
  suiteRepository: string | null | undefined,
): boolean {
  return repository === null || suiteRepository === undefined || suiteRepository === repository;
}

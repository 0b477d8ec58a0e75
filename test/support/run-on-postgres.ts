import { execFile } from "node:child_process";
import type { TestContext } from "node:test";
import { promisify } from "node:util";
import { startPostgres } from "./postgres-server.ts";
import { prepareTestDatabases, serverVariable } from "./test-database.ts";

const run = promisify(execFile);
const maxOutputBytes = 64 * 1024 ** 2;

interface RepeatedTests {
  readonly files: readonly string[];
  /** Of the names of tests that are left out; none are where it is absent. */
  readonly skipPattern?: string;
  /** Further variables of the environment. */
  readonly environment?: Readonly<Record<string, string>>;
}

/** Runs test files again, with their records in databases of a PostgreSQL server. */
export async function runOnPostgres(
  t: Pick<TestContext, "after">,
  { files, skipPattern, environment: further }: RepeatedTests,
): Promise<void> {
  const { url } = await startPostgres(t);
  await prepareTestDatabases(url);
  // Node's runner refuses to run within a test while it sees this variable.
  const { NODE_TEST_CONTEXT: _, ...environment } = process.env;
  // One process loads the modules once; the files have no state that another one would see.
  const options = ["--test-isolation=none", "--test-force-exit", "--test-reporter=dot"];
  // A pattern such as `^$` would fit the nameless test that stands for a file, and skip all of it.
  if (skipPattern !== undefined) options.push(`--test-skip-pattern=${skipPattern}`);
  const args = ["--test", ...options, ...files.toSorted()];
  await run(process.execPath, args, {
    env: { ...environment, ...further, [serverVariable]: url },
    maxBuffer: maxOutputBytes,
  }).catch((error: unknown) => {
    const output = error instanceof Error && "stdout" in error ? String(error.stdout) : "";
    throw new Error(`Tests on PostgreSQL fail:\n${output}`, { cause: error });
  });
}

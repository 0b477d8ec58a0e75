import { glob } from "node:fs/promises";
import { basename } from "node:path";
import test from "node:test";
import { postgresMissing } from "../support/cluster/cluster-missing.ts";
import { runOnPostgres } from "../support/run-on-postgres.ts";

/** About files of SQLite, or they start a server of their own. */
const without = ["open-records", "upgrades", "indexes", "postgres", "postgres-schema", "replicas"];

test("records on PostgreSQL are as on SQLite", { skip: postgresMissing }, async (t) => {
  const all = await Array.fromAsync(glob("test/records/*.test.ts"));
  const files = all.filter((file) => !without.includes(basename(file, ".test.ts")));
  await runOnPostgres(t, { files });
});

import test from "node:test";
import { postgresMissing } from "../support/cluster/cluster-missing.ts";
import { runOnPostgres } from "../support/run-on-postgres.ts";

test("records on PostgreSQL are as on SQLite", { skip: postgresMissing }, async (t) => {
  // Others are about files of SQLite, or start a server of their own.
  const without = [
    "open-records",
    "upgrades",
    "indexes",
    "postgres",
    "postgres-schema",
    "replicas",
  ];
  await runOnPostgres(t, { pattern: "test/records/*.test.ts", without });
});

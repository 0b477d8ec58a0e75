import test from "node:test";
import { postgresMissing } from "../support/cluster/cluster-missing.ts";
import { runOnPostgres } from "../support/run-on-postgres.ts";

test("the service on PostgreSQL is as on SQLite", { skip: postgresMissing }, async (t) => {
  await runOnPostgres(t, {
    pattern: "test/server/*.test.ts",
    without: ["postgres", "schemathesis"],
    // They stop the clock, by which connections to a server would be lost.
    skipPattern: "^a quiet event stream|^a stream ends within five seconds",
  });
});

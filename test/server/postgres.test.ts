import test from "node:test";
import { postgresMissing } from "../support/cluster/cluster-missing.ts";
import { runOnPostgres } from "../support/run-on-postgres.ts";

test("the service on PostgreSQL is as on SQLite", { skip: postgresMissing }, async (t) => {
  await runOnPostgres(t, {
    pattern: "test/server/*.test.ts",
    // Those that are left out besides measure models, fuzz requests for minutes or read no records.
    without: ["postgres", "schemathesis", "gates", "negotiate-media-type", "parse-byte-range"],
    // They stop the clock, by which connections to a server would be lost, or count turns of the loop.
    skipPattern: "^a quiet event stream|^a stream ends within five|^a reader that goes away costs",
  });
});

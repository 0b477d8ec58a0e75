import assert from "node:assert/strict";
import { glob, readFile } from "node:fs/promises";
import { join } from "node:path";
import test from "node:test";
import { errorTable, problemDetails, ServiceError } from "../../src/contract/errors.ts";

test("errorTable has no code that the service never gives", async () => {
  const root = join(import.meta.dirname, "../..");
  const files = await Array.fromAsync(
    glob(["src/**/*.ts", "operator/**/*.ts"], { cwd: root, exclude: ["src/contract/errors.ts"] }),
  );
  const source = (await Promise.all(files.map((file) => readFile(join(root, file), "utf8")))).join(
    "\n",
  );
  const unused = Object.keys(errorTable).filter((code) => !source.includes(`"${code}"`));
  assert.deepEqual(unused, []);
});

test("problemDetails() names the fields and keeps the cause to itself", () => {
  const fields = [{ pointer: "/target", message: "Is not known" }];
  const error = new ServiceError("unknown_target", 'There is no target "x"', {
    fields,
    cause: new Error("secret"),
  });
  assert.deepEqual(problemDetails(error), {
    type: "https://modeloptimization.dev/errors/unknown_target",
    title: "No such target",
    status: 422,
    code: "unknown_target",
    detail: 'There is no target "x"',
    errors: fields,
  });
});

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import test from "node:test";
import { parse } from "yaml";
import { z } from "zod";
import { routes } from "../../src/contract/routes/routes.ts";

const root = join(import.meta.dirname, "../..");
const chartFolder = join(root, "charts/model-optimization");
const page = await readFile(join(root, "docs/alerts.md"), "utf8");

test("docs/alerts.md names values of the chart and routes that are there", async () => {
  const values: unknown = parse(await readFile(join(chartFolder, "values.yaml"), "utf8"));
  const fields = /`((?:service|operator|monitoring)\.[\w.]+)`/g;
  const named = Array.from(page.matchAll(fields), ([, field = ""]) => field);
  assert.ok(named.length >= 5);
  assert.deepEqual(
    named.filter((field) => !hasField(values, field.split("."))),
    [],
  );
  const paths = Object.values(routes).map(({ method, path }) => `${method} ${path}`);
  const called = Array.from(page.matchAll(/`(DELETE) \/v1(\/[^`]*)`/g), ([, method, path]) =>
    [method, path].join(" "),
  );
  assert.deepEqual(
    called.filter((call) => !paths.includes(call)),
    [],
  );
});

function hasField(values: unknown, [field = "", ...rest]: readonly string[]): boolean {
  const { success, data } = z.record(z.string(), z.unknown()).safeParse(values);
  if (!success || !Object.hasOwn(data, field)) return false;
  return rest.length === 0 || hasField(data[field], rest);
}

import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";

/** What the action and the service call of GitHub's interface, by operation id. */
const operations = new Set([
  "apps/create-installation-access-token",
  "apps/get-repo-installation",
  "checks/create",
  "checks/get",
  "checks/list-annotations",
  "checks/list-for-ref",
  "checks/update",
  "git/get-commit",
  "issues/create-comment",
  "issues/list-comments",
  "issues/update-comment",
  "repos/compare-commits-with-basehead",
]);

/** What nothing here reads. Properties of schemas may have these names too. */
const unread = new Set(["example", "examples", "externalDocs", "tags"]);

const fullDocument = z.object({
  openapi: z.string(),
  info: z.object({ title: z.string(), version: z.string(), license: z.unknown() }),
  paths: z.record(
    z.string(),
    z.record(z.string(), z.looseObject({ operationId: z.string().optional() })),
  ),
  components: z.record(z.string(), z.record(z.string(), z.unknown())),
});

/** The operations that are used, and the components that they reach. */
function selectOperations({ openapi, info, paths, components }: z.output<typeof fullDocument>) {
  const kept: Record<string, Record<string, unknown>> = {};
  const follow = (node: unknown): void => {
    if (typeof node !== "object" || node === null) return;
    if ("$ref" in node) keep(String(node.$ref));
    Object.values(node).forEach(follow);
  };
  const keep = (reference: string): void => {
    const [, , kind = "", name = ""] = reference.split("/");
    const group = (kept[kind] ??= {});
    if (name in group) return;
    group[name] = withoutUnread(components[kind]?.[name]);
    follow(group[name]);
  };
  const used = Object.entries(paths).flatMap(([path, methods]) => {
    const entries = Object.entries(methods).filter(([, { operationId }]) =>
      operations.has(operationId ?? ""),
    );
    return entries.length > 0 ? [[path, withoutUnread(Object.fromEntries(entries))] as const] : [];
  });
  follow(used);
  return { openapi, info, paths: Object.fromEntries(used), components: kept };
}

function withoutUnread(node: unknown, isProperties = false): unknown {
  if (Array.isArray(node)) return node.map((each) => withoutUnread(each));
  if (typeof node !== "object" || node === null) return node;
  const entries = Object.entries(node).filter(
    ([key]) => isProperties || !(unread.has(key) || key.startsWith("x-")),
  );
  return Object.fromEntries(
    entries.map(([key, value]) => [
      key,
      withoutUnread(value, !isProperties && key === "properties"),
    ]),
  );
}

const [, , source] = process.argv;
if (source === undefined) {
  throw new Error(
    "Usage: node scripts/cut-github-openapi.ts FILE, with generated/api.github.com.json of @octokit/openapi",
  );
}
const document = fullDocument.parse(JSON.parse(await readFile(source, "utf8")));
const file = join(import.meta.dirname, "../test/action/support/github-openapi.json");
await writeFile(file, JSON.stringify(selectOperations(document)));

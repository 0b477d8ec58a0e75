import assert from "node:assert/strict";
import test from "node:test";
import { z } from "zod";
import { openApiDocument } from "../../src/contract/openapi/openapi-document.ts";
import type { Route } from "../../src/contract/routes/route.ts";
import { routes } from "../../src/contract/routes/routes.ts";

const schemaPart = z.record(z.string(), z.unknown());
const answer = z.object({
  description: z.string().min(1),
  headers: z
    .record(z.string(), z.object({ description: z.string().min(1), schema: schemaPart }))
    .optional(),
  content: z.record(z.string(), z.object({ schema: schemaPart.optional() })).optional(),
});
const operation = z.object({
  operationId: z.string(),
  summary: z.string(),
  parameters: z
    .array(
      z.object({
        name: z.string(),
        in: z.enum(["path", "query", "header"]),
        required: z.boolean().default(false),
        schema: schemaPart,
      }),
    )
    .default([]),
  requestBody: z
    .object({ required: z.literal(true), content: z.record(z.string(), schemaPart) })
    .optional(),
  responses: z.record(z.string().regex(/^[1-5]\d\d$/), answer),
});
const document = z
  .object({
    openapi: z.string().regex(/^3\.1\.\d$/),
    info: z.object({ title: z.string(), version: z.string() }),
    security: z.tuple([z.object({ token: z.tuple([]) })]),
    paths: z.record(
      z.string().startsWith("/"),
      z.partialRecord(z.enum(["get", "put", "post", "delete", "head"]), operation),
    ),
    components: z.object({
      schemas: z.record(z.string(), schemaPart),
      securitySchemes: z.object({
        token: z.object({ type: z.literal("http"), scheme: z.literal("bearer") }),
      }),
    }),
  })
  .parse(openApiDocument());

function findOperation(route: Route) {
  return operation.parse(
    Object.entries(document.paths[route.path] ?? {}).find(
      ([method]) => method === route.method.toLowerCase(),
    )?.[1],
  );
}

test("openApiDocument() describes every route and nothing else", () => {
  const described = Object.entries(document.paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(
      ([method, found]) => `${found.operationId} ${method.toUpperCase()} ${path}`,
    ),
  );
  const declared = Object.entries<Route>(routes).map(
    ([name, route]) => `${name} ${route.method} ${route.path}`,
  );
  assert.deepEqual(described.toSorted(), declared.toSorted());
});

test("openApiDocument() has a definition for every reference", () => {
  const references = JSON.stringify(document).matchAll(/"\$ref":"([^"]*)"/g);
  for (const [, reference = ""] of references) {
    const [, name = ""] = /^#\/components\/schemas\/(.*)$/.exec(reference) ?? [];
    assert.ok(name in document.components.schemas, reference);
  }
});

for (const [name, route] of Object.entries<Route>(routes)) {
  test(`openApiDocument() describes the parameters, body and answers of ${name}`, () => {
    const { parameters, requestBody, responses } = findOperation(route);
    const inPath = parameters.filter((parameter) => parameter.in === "path");
    assert.deepEqual(
      inPath.map((parameter) => `{${parameter.name}}`),
      route.path.match(/\{\w+\}/g) ?? [],
    );
    assert.ok(inPath.every(({ required }) => required));
    assert.equal(requestBody !== undefined, route.body !== undefined || route.upload === true);
    const unauthorized = route.open ? [] : ["401"];
    for (const status of [...Object.keys(route.replies), ...unauthorized, "500"])
      assert.ok(status in responses, status);
    for (const [status, { content }] of Object.entries(responses)) {
      if (Number(status) >= 400 && route.method !== "HEAD")
        assert.ok(content?.["application/problem+json"], status);
    }
  });
}

test("openApiDocument() names what a submission is answered with besides a job", () => {
  const { responses } = findOperation(routes.startCompression);
  assert.deepEqual(Object.keys(responses), [
    "202",
    "400",
    "401",
    "403",
    "413",
    "415",
    "422",
    "429",
    "500",
    "503",
    "507",
  ]);
  assert.deepEqual(Object.keys(responses["202"]?.headers ?? {}), [
    "location",
    "idempotency-replayed",
  ]);
  assert.ok(responses["401"]?.headers?.["WWW-Authenticate"]);
});

test("every operation has a tag that is described, and every schema a use", () => {
  const text = JSON.stringify(openApiDocument());
  const { tags, paths, components } = z
    .object({
      tags: z.array(z.object({ name: z.string(), description: z.string().min(1) })),
      paths: z.record(z.string(), z.record(z.string(), z.object({ tags: z.tuple([z.string()]) }))),
      components: z.object({ schemas: schemaPart }),
    })
    .parse(JSON.parse(text));
  const names = tags.map(({ name }) => name).toSorted();
  const used = Object.values(paths).flatMap((path) =>
    Object.values(path).map((each) => each.tags[0]),
  );
  assert.deepEqual([...new Set(used)].toSorted(), names);
  const unused = Object.keys(components.schemas).filter(
    (name) => !text.includes(`"#/components/schemas/${name}"`),
  );
  assert.deepEqual(unused, []);
});

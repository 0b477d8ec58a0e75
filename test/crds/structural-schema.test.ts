import assert from "node:assert/strict";
import test from "node:test";
import { z } from "zod";
import { structuralSchema } from "../../scripts/structural-schema.ts";
import { valueRules, withRules } from "../../src/contract/rule.ts";

test("structuralSchema() gives bounds, defaults, rules and patterns in Kubernetes' form", () => {
  const code = z.string().max(1).regex(/^a$/);
  valueRules.add(code, { rules: [{ cel: "self == 'a'", message: "must be a" }] });
  const fields = z.strictObject({
    url: z
      .string()
      .max(9)
      .regex(/^https:\/\//)
      .describe("Where."),
    size: z.literal([16, 32]).default(16).describe("How large."),
    share: z.number().positive().nullable().describe("How much."),
    tags: z
      .record(z.string().regex(/^[a-z]+$/), z.string().max(5))
      .meta({ maxProperties: 3, description: "What kind." }),
    at: z.iso.datetime().optional().describe("When."),
    code: code.optional().describe("Which."),
  });
  const rule = {
    field: "url",
    message: "must be short",
    isMet: () => true,
    cel: "size(self.url) < 5",
  } as const;
  assert.deepEqual(JSON.parse(JSON.stringify(structuralSchema(withRules(fields, [rule])))), {
    type: "object",
    required: ["url", "share", "tags"],
    properties: {
      url: { type: "string", maxLength: 9, pattern: "^https://", description: "Where." },
      size: {
        type: "integer",
        format: "int64",
        enum: [16, 32],
        default: 16,
        description: "How large.",
      },
      share: {
        type: "number",
        format: "double",
        minimum: 0,
        exclusiveMinimum: true,
        nullable: true,
        description: "How much.",
      },
      tags: {
        type: "object",
        maxProperties: 3,
        description: "What kind.",
        additionalProperties: { type: "string", maxLength: 5 },
        "x-kubernetes-validations": [
          { rule: "self.all(key, key.matches(r'^[a-z]+$'))", message: "keys must match ^[a-z]+$" },
        ],
      },
      at: { type: "string", format: "date-time", maxLength: 40, description: "When." },
      code: {
        type: "string",
        maxLength: 1,
        description: "Which.",
        "x-kubernetes-validations": [
          {
            rule: "self == 'a'",
            message: "must be a",
          },
        ],
      },
    },
    "x-kubernetes-validations": [{ rule: rule.cel, message: rule.message, fieldPath: ".url" }],
  });
});

const unsayable: readonly [what: string, schema: z.ZodType, message: RegExp][] = [
  ["a string without an end", z.object({ a: z.string() }), /"\.a" has no maxLength/],
  ["a list without an end", z.object({ a: z.array(z.boolean()) }), /"\.a" has no maxItems/],
  [
    "a map without an end",
    z.object({ a: z.record(z.string(), z.boolean()) }),
    /"\.a" has no maxProperties/,
  ],
  [
    "a string without an end in a list",
    z.object({ a: z.array(z.string()).max(1) }),
    /"\.a\[\]" has no maxLength/,
  ],
  ["alternatives", z.object({ a: z.union([z.boolean(), z.int()]) }), /cannot say what "\.a" is/],
  [
    "a default of null",
    z.object({ a: z.int().nullable().default(null).describe("A.") }),
    /"\.a" has null as its default/,
  ],
  ["a field that nothing explains", z.object({ a: z.int() }), /"\.a" has no description/],
  ["anything", z.object({ a: z.unknown() }), /"\.a" has no type/],
];
for (const [what, schema, message] of unsayable) {
  test(`structuralSchema() refuses ${what} and names it`, () => {
    assert.throws(() => structuralSchema(schema), { name: "TypeError", message });
  });
}

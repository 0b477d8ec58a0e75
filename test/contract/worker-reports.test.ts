import assert from "node:assert/strict";
import test from "node:test";
import { z } from "zod";
import { maxLogLineBytes } from "../../src/contract/jobs/log.ts";
import { sourceQuestion, uploadQuestion } from "../../src/contract/worker-protocol/transfers.ts";
import { terminationMessage, workerEvents } from "../../src/contract/worker-protocol/messages.ts";
import { hasHiddenCharacters } from "../../src/contract/text/hidden-characters.ts";

/** All that workers send, but for the bytes of files. */
const reports = { workerEvents, terminationMessage, uploadQuestion, sourceQuestion };

const hiddenTexts = [
  "\n",
  "\r",
  "\u001b[31m",
  "\u0000",
  "\u009b",
  "\u061c",
  "\u2028",
  "\u202e",
  "\u00ad",
  "\u200b",
  "\u200d",
  "\u2060",
  "\u3164",
  "\ufe0f",
  "\ufeff",
  "\ufffb",
  "\u{e0041}",
  "\u{e0100}",
].map((character) => `a${character}b`);
const longText = "x".repeat(5_000_000);
const maxEntries = 1000;

/** What is wrong with a schema, or with one within it, as `PATH: PROBLEM`. */
function findProblems(schema: z.core.$ZodType, path: string): string[] {
  if (schema instanceof z.ZodString || schema instanceof z.ZodStringFormat) {
    return findTextProblems(schema).map((problem) => `${path}: ${problem}`);
  }
  if (schema instanceof z.ZodNumber) {
    const { minValue, maxValue } = schema;
    const isRange = Number(minValue) > Number.MIN_SAFE_INTEGER && Number.isFinite(maxValue);
    return isRange ? [] : [`${path}: a number without a range`];
  }
  if (schema instanceof z.ZodArray) return findListProblems(schema, path);
  if (schema instanceof z.ZodObject) return findObjectProblems(schema, path);
  if (schema instanceof z.ZodDiscriminatedUnion || schema instanceof z.ZodUnion) {
    return schema.options.flatMap((option) => findProblems(option, path));
  }
  if (
    schema instanceof z.ZodOptional ||
    schema instanceof z.ZodNullable ||
    schema instanceof z.ZodDefault
  ) {
    return findProblems(schema.unwrap(), path);
  }
  return isFixed(schema)
    ? []
    : [`${path}: a ${schema._zod.def.type}, which is not known to be bounded`];
}

function isFixed(schema: z.core.$ZodType): boolean {
  return (
    schema instanceof z.ZodEnum || schema instanceof z.ZodLiteral || schema instanceof z.ZodBoolean
  );
}

function findListProblems(schema: z.ZodArray, path: string): string[] {
  return [
    ...(hasLength(schema) ? [] : [`${path}: a list without a length`]),
    ...findProblems(schema.element, `${path}[]`),
  ];
}

function findObjectProblems(schema: z.ZodObject, path: string): string[] {
  const others = schema._zod.def.catchall;
  const isOpen = others !== undefined && !(others instanceof z.ZodNever);
  const fields = Object.entries(schema.shape);
  return [
    ...(isOpen ? [`${path}: takes any field`] : []),
    ...fields.flatMap(([name, field]) => findProblems(field, `${path}.${name}`)),
  ];
}

function hasLength(list: z.ZodArray): boolean {
  return (list._zod.def.checks ?? []).some(({ _zod: { def } }) => {
    return def.check === "max_length" && "maximum" in def && Number(def.maximum) <= maxEntries;
  });
}

function findTextProblems(schema: z.ZodString | z.ZodStringFormat): string[] {
  const { data: cut = "" } = schema.safeParse(longText);
  const longest = schema.maxLength ?? schema.meta()?.["maxLength"];
  const isBounded = typeof longest === "number" && cut.length <= maxLogLineBytes;
  const shown = hiddenTexts.flatMap((text) => schema.safeParse(text).data ?? []);
  return [
    ...(isBounded ? [] : ["a text without a limit"]),
    ...(shown.some(hasHiddenCharacters) ? ["a text with hidden characters"] : []),
  ];
}

for (const [name, schema] of Object.entries(reports)) {
  test(`each text, number and list of ${name} is bounded, and each text is one visible line`, () => {
    assert.deepEqual(findProblems(schema, name), []);
  });
}

test("a field without limit, range, length or visible line is found", () => {
  const careless = {
    text: z.string(),
    "text of a limit": z.string().max(10),
    "text with a time": z.iso.datetime(),
    number: z.number().max(1),
    integer: z.int(),
    list: z.array(z.literal(1)),
    "list of texts": z.array(z.string()).max(1),
    record: z.record(z.string(), z.string()),
    anything: z.unknown(),
    open: z.looseObject({}),
    changed: z.string().transform((text) => text),
  };
  for (const [name, schema] of Object.entries(careless)) {
    assert.notDeepEqual(findProblems(z.object({ field: schema.optional() }), name), [], name);
  }
});

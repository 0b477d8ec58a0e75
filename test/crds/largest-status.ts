import { readFile } from "node:fs/promises";
import { parse } from "yaml";
import { z } from "zod";

const schema = z.object({
  type: z.enum(["object", "array", "string", "number", "integer", "boolean"]),
  get properties() {
    return z.record(z.string(), schema).default({});
  },
  get items() {
    return schema.optional();
  },
  enum: z.array(z.unknown()).default([]),
  format: z.string().optional(),
  pattern: z.string().default(""),
  maxLength: z.int().default(0),
  maxItems: z.int().default(0),
  maximum: z.number().optional(),
  "x-kubernetes-list-map-keys": z.array(z.string()).default([]),
});
type Schema = z.infer<typeof schema>;

const definition = z.object({
  spec: z.object({
    versions: z.tuple([
      z.object({
        schema: z.object({
          openAPIV3Schema: z.object({ properties: z.object({ status: schema }) }),
        }),
      }),
    ]),
  }),
});

/** A status in which everything is as long as the definition allows. */
export async function largestStatus(plural: "compressionjobs" | "batches"): Promise<unknown> {
  const { spec } = definition.parse(parse(await readFile(`crds/${plural}.yaml`, "utf8")));
  return largest(spec.versions[0].schema.openAPIV3Schema.properties.status);
}

function largest(of: Schema): unknown {
  switch (of.type) {
    case "boolean":
      return false;
    case "integer":
      return of.maximum ?? Number.MAX_SAFE_INTEGER;
    case "number":
      return of.maximum === undefined ? -Number.MAX_VALUE : of.maximum / 3;
    case "string":
      return longest(of);
    case "array":
      return Array.from({ length: of.maxItems }, (_, i) => distinct(of, i));
    case "object":
      return Object.fromEntries(
        Object.entries(of.properties).map(([name, property]) => [name, largest(property)]),
      );
  }
}

function longest({ enum: values, format, pattern, maxLength }: Schema): string {
  if (values.length > 0)
    return (
      values
        .map(String)
        .toSorted((a, b) => a.length - b.length)
        .at(-1) ?? ""
    );
  if (format === "date-time") return "2026-03-01T00:00:00.000Z";
  const texts = ["a", "m"].map((letter) => letter.repeat(maxLength));
  const ids = ["job-", "batch-"].map((prefix) => prefix.padEnd(maxLength, "0"));
  const found = [...texts, ...ids].find((text) => new RegExp(pattern).test(text));
  if (found === undefined) throw new Error(`No text is known that matches ${pattern}`);
  return found;
}

/** Entries of a list that is a map differ in their keys. */
function distinct({ items, "x-kubernetes-list-map-keys": keys }: Schema, index: number): unknown {
  const entry = items && largest(items);
  if (typeof entry !== "object" || entry === null) return entry;
  return { ...entry, ...Object.fromEntries(keys.map((key) => [key, `a${index}`.padEnd(64, "a")])) };
}

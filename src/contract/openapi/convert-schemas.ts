import { z } from "zod";

export type Json = Readonly<Record<string, unknown>>;

export interface ConvertedSchemas {
  /** Each schema as an operation has it: a reference where the schema has an id. */
  readonly schemas: Readonly<Record<string, Json>>;
  /** Schemas with an id, by it. */
  readonly shared: Readonly<Record<string, Json>>;
}

/** The parts of an object's JSON schema that the document is built from. */
export const objectSchema = z.object({
  properties: z.record(z.string(), z.record(z.string(), z.unknown())).default({}),
  required: z.array(z.string()).default([]),
  $defs: z.record(z.string(), z.record(z.string(), z.unknown())).default({}),
});

/** JSON schemas of values before parsing (input) or after it (output). */
export function convertSchemas(
  io: "input" | "output",
  schemas: Readonly<Record<string, z.ZodType>>,
): ConvertedSchemas {
  const all = z.toJSONSchema(z.object(schemas), {
    target: "draft-2020-12",
    io,
    override({ zodSchema, jsonSchema }) {
      const { def } = zodSchema._zod;
      // Answers may gain fields without a new version of the interface.
      if (io === "output" && def.type === "object" && !("catchall" in def && def.catchall)) {
        delete jsonSchema.additionalProperties;
      }
      // Linters want the properties that are required spelled out.
      const { required, additionalProperties } = jsonSchema;
      if (def.type === "record" && required && typeof additionalProperties === "object") {
        const properties = required.map((name) => [name, additionalProperties] as const);
        jsonSchema.properties = Object.fromEntries(properties);
      }
    },
  });
  const text = JSON.stringify(all).replaceAll('"#/$defs/', '"#/components/schemas/');
  const { properties, $defs } = objectSchema.parse(JSON.parse(text));
  return { schemas: properties, shared: $defs };
}

/**
 * The shared schemas of requests and answers, sorted by their ids.
 * @throws Error where two different schemas have the same id
 */
export function mergeSharedSchemas(
  inputs: ConvertedSchemas["shared"],
  outputs: ConvertedSchemas["shared"],
): ConvertedSchemas["shared"] {
  for (const [id, schema] of Object.entries(inputs)) {
    if (id in outputs && JSON.stringify(outputs[id]) !== JSON.stringify(schema)) {
      throw new Error(
        `Schema "${id}" differs between requests and answers: give the two different ids`,
      );
    }
  }
  const all = Object.entries({ ...inputs, ...outputs });
  return Object.fromEntries(all.toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

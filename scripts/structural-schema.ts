import { z } from "zod";
import { schemaRules, valueRules } from "../src/contract/rule.ts";

type Json = Readonly<Record<string, unknown>>;

/** A check of Kubernetes' own; `self` is the value, `oldSelf` the one before an update. */
export interface Validation {
  readonly rule: string;
  readonly message: string;
  readonly fieldPath?: string;
}

const node = z.strictObject({
  $ref: z.string().optional(),
  allOf: z.tuple([z.record(z.string(), z.unknown())]).optional(),
  type: z.enum(["object", "array", "string", "number", "integer", "boolean"]).optional(),
  description: z.string().optional(),
  default: z.unknown().optional(),
  nullable: z.boolean().optional(),
  enum: z.array(z.unknown()).optional(),
  format: z.string().optional(),
  pattern: z.string().optional(),
  minLength: z.int().optional(),
  maxLength: z.int().optional(),
  minimum: z.number().optional(),
  maximum: z.number().optional(),
  exclusiveMinimum: z.boolean().optional(),
  items: z.record(z.string(), z.unknown()).optional(),
  minItems: z.int().optional(),
  maxItems: z.int().optional(),
  properties: z.record(z.string(), z.record(z.string(), z.unknown())).optional(),
  required: z.array(z.string()).optional(),
  additionalProperties: z.union([z.literal(false), z.record(z.string(), z.unknown())]).optional(),
  maxProperties: z.int().optional(),
  "x-kubernetes-validations": z.array(z.record(z.string(), z.string())).optional(),
  "x-kubernetes-list-type": z.literal("map").optional(),
  "x-kubernetes-list-map-keys": z.array(z.string()).optional(),
});
type Node = z.infer<typeof node>;

/**
 * A schema in the form that a CustomResourceDefinition takes: no references, no alternatives, everything bounded.
 * @throws TypeError for what cannot be said in it, or has no bound
 */
export function structuralSchema(schema: z.ZodType): Json {
  const { definitions = {}, ...root } = z.toJSONSchema(schema, {
    target: "openapi-3.0",
    io: "input",
    reused: "inline",
    override({ zodSchema, jsonSchema }) {
      const validations = [
        ...(schemaRules.get(zodSchema)?.rules ?? []).map(fieldValidation),
        ...keyValidations(zodSchema),
      ];
      const ofValue = valueRules.get(zodSchema)?.rules;
      if (ofValue !== undefined) {
        delete jsonSchema.pattern;
        validations.push(...ofValue.map(({ message, cel }) => ({ rule: cel, message })));
      }
      if (validations.length > 0) jsonSchema["x-kubernetes-validations"] = validations;
    },
  });
  return toStructural(root, {
    path: "",
    definitions: z.record(z.string(), z.unknown()).parse(definitions),
  });
}

function fieldValidation({
  field,
  message,
  cel,
}: {
  field: string;
  message: string;
  cel: string;
}): Validation {
  return { rule: cel, message, fieldPath: `.${field}` };
}

/** Structural schemas have no schema for keys: their pattern becomes a rule. */
function keyValidations(schema: z.core.$ZodType): Validation[] {
  if (!(schema instanceof z.ZodRecord)) return [];
  const { pattern } = z.toJSONSchema(schema.keyType, { target: "openapi-3.0" });
  if (pattern === undefined) return [];
  return [
    {
      rule: `self.all(key, key.matches(r'${unescapeSlashes(pattern)}'))`,
      message: `keys must match ${unescapeSlashes(pattern)}`,
    },
  ];
}

interface Place {
  readonly path: string;
  readonly definitions: Readonly<Record<string, unknown>>;
}

function toStructural(json: unknown, place: Place): Json {
  const { success, data, error } = node.safeParse(json);
  if (!success) throw new TypeError(`A CRD cannot say what "${place.path}" is`, { cause: error });
  const { $ref, allOf, ...rest } = data;
  if (allOf !== undefined) return toStructural({ ...allOf[0], ...rest }, place);
  if ($ref !== undefined) {
    const definition = z
      .record(z.string(), z.unknown())
      .parse(place.definitions[$ref.slice("#/definitions/".length)]);
    return toStructural({ ...definition, ...rest }, place);
  }
  // The API server would not store it, so that the definition would never be what was applied.
  if (rest.default === null) throw new TypeError(`"${place.path}" has null as its default`);
  return { ...rest, ...withBounds(rest, place) };
}

function withBounds(schema: Node, place: Place): Json {
  switch (schema.type) {
    case "boolean":
      return {};
    case "integer":
      return { format: "int64" };
    case "number":
      return schema.enum?.every(Number.isInteger)
        ? { type: "integer", format: "int64" }
        : { format: "double" };
    case "string":
      return boundedString(schema, place);
    case "array":
      if (schema.maxItems === undefined) throw new TypeError(`"${place.path}" has no maxItems`);
      return { items: toStructural(schema.items, { ...place, path: `${place.path}[]` }) };
    case "object":
      return boundedObject(schema, place);
    case undefined:
      throw new TypeError(`"${place.path}" has no type`);
  }
}

const maxTimeLength = 40;

function boundedString({ format, enum: values, maxLength, pattern }: Node, { path }: Place): Json {
  // The API server checks times itself.
  if (format === "date-time") return { maxLength: maxTimeLength, pattern: undefined };
  if (maxLength === undefined && values === undefined)
    throw new TypeError(`"${path}" has no maxLength`);
  return { pattern: pattern && unescapeSlashes(pattern) };
}

function boundedObject(
  { properties, additionalProperties, maxProperties }: Node,
  place: Place,
): Json {
  const { path } = place;
  if (additionalProperties) {
    if (maxProperties === undefined) throw new TypeError(`"${path}" has no maxProperties`);
    return {
      additionalProperties: toStructural(additionalProperties, { ...place, path: `${path}{}` }),
    };
  }
  if (properties === undefined) throw new TypeError(`"${path}" has no properties`);
  return {
    // What is not named is dropped or refused as the client asks; a structural schema need not say so.
    additionalProperties: undefined,
    properties: Object.fromEntries(
      Object.entries(properties).map(([name, property]) => [
        name,
        describedProperty(property, { ...place, path: `${path}.${name}` }),
      ]),
    ),
  };
}

function describedProperty(json: unknown, place: Place): Json {
  const property = toStructural(json, place);
  if (property["description"] === undefined)
    throw new TypeError(`"${place.path}" has no description`);
  return property;
}

/** JavaScript escapes slashes, which need it nowhere else. */
function unescapeSlashes(pattern: string): string {
  return pattern.replaceAll("\\/", "/");
}

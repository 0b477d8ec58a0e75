import { z } from "zod";
import { type ActionInputName, failOnTable, jobChecksTable } from "../contract/batches/action.ts";
import { gateLimits } from "../contract/jobs/gate.ts";
import { requestedRecipe } from "../contract/jobs/recipe.ts";
import { jobKindTable } from "../contract/jobs/status.ts";
import { parseYaml } from "./parse-yaml.ts";

const longestSeconds = 7 * 24 * 3600;
const unitSeconds = { s: 1, m: 60, h: 3600 };

const flag = z
  .string()
  .regex(/^(true|false)$/i, { error: "must be true or false" })
  .transform((text) => text.toLowerCase() === "true");

const seconds = z
  .string()
  .regex(/^[1-9]\d{0,5}[smh]?$/, {
    error: "must be a number of minutes, or a time such as 90s, 45m or 2h",
  })
  .transform((text) => {
    const { number, unit = "m" } = /^(?<number>\d+)(?<unit>[smh])?$/.exec(text)?.groups ?? {};
    return Number(number) * unitSeconds[unit as keyof typeof unitSeconds];
  })
  .refine((time) => time <= longestSeconds, { error: "must not be more than a week" });

/** Without the `/v1` of the interface, which may be given too: links to pages begin with it. */
const serviceUrl = z
  .url({ protocol: /^https?$/, error: "must be an address such as https://mos.example.com" })
  .transform((url) => url.replace(/\/+$/, "").replace(/\/v1$/, ""));

/** The action's inputs, parsed from the runner's strings. */
export const inputsSchema = z.object({
  "service-url": serviceUrl,
  token: z.string().optional(),
  audience: z.string().optional(),
  "batch-file": z.string().optional(),
  models: z.string().transform(splitLines).optional(),
  targets: z.string().transform(splitWords).optional(),
  kind: choiceSchema(jobKindTable).optional(),
  recipe: yamlSchema(requestedRecipe).optional(),
  gates: yamlSchema(gateLimits).optional(),
  suite: z.string().max(200).optional(),
  // Events name branches by their refs, too.
  baseline: z
    .string()
    .max(255)
    .transform((name) => name.replace(/^refs\/heads\//, ""))
    .optional(),
  "fail-on": choiceSchema(failOnTable),
  wait: flag,
  timeout: seconds,
  "check-name": z.string().max(200).optional(),
  "job-checks": choiceSchema(jobChecksTable),
  comment: flag,
  "dry-run": flag,
  download: flag,
  "github-token": z.string().optional(),
  matrix: z.string().transform(matrixValues).optional(),
} satisfies Record<ActionInputName, z.ZodType>);
export type Inputs = z.output<typeof inputsSchema>;

/** The inputs that say how a step reports, besides those that say what it does. */
export const reportingSchema = inputsSchema.pick({
  "batch-file": true,
  "fail-on": true,
  "check-name": true,
  "job-checks": true,
  "dry-run": true,
  "github-token": true,
  matrix: true,
});
export type ReportingInputs = z.output<typeof reportingSchema>;

function choiceSchema<T extends string>(table: Readonly<Record<T, string>>) {
  const values = Object.keys(table) as T[];
  return z.enum(values, { error: `must be ${values.slice(0, -1).join(", ")} or ${values.at(-1)}` });
}

function yamlSchema<Schema extends z.ZodType>(schema: Schema) {
  return z.string().transform((text, context): z.output<Schema> => {
    const parsed = parseYaml(text, schema);
    if ("value" in parsed) return parsed.value;
    for (const { line, message } of parsed.problems) context.addIssue(`line ${line}: ${message}`);
    return z.NEVER;
  });
}

function splitLines(text: string): string[] {
  return text.split("\n").flatMap((line) => line.trim() || []);
}

function splitWords(text: string): string[] {
  return text.split(/[\s,]+/).filter((word) => word !== "");
}

/** The values of the job's matrix in this leg, in the order of the workflow. */
function matrixValues(text: string): string[] {
  const leaves = (value: unknown): string[] =>
    typeof value === "object" && value !== null
      ? Object.values(value).flatMap(leaves)
      : [String(value)];
  const matrix: unknown = JSON.parse(text);
  return matrix === null ? [] : leaves(matrix);
}

import { z } from "zod";
import { type ActionInputName, actionInputs } from "../contract/action.ts";
import { gateLimits } from "../contract/gate.ts";
import { requestedRecipe } from "../contract/recipe.ts";
import { targetName } from "../contract/target.ts";
import { InputError } from "./input-error.ts";
import { parseYaml } from "./parse-yaml.ts";

const flag = z
  .string()
  .regex(/^(true|false)$/i, { error: "must be true or false" })
  .transform((text) => text.toLowerCase() === "true");

const minutes = z
  .string()
  .regex(/^[1-9]\d{0,3}$/, { error: "must be a number of minutes from 1 to 9999" })
  .transform(Number);

const baseUrl = z
  .url({ protocol: /^https?$/, error: "must be an address such as https://mos.example.com" })
  .transform((url) => `${url.replace(/\/+$/, "").replace(/\/v1$/, "")}/v1`);

const lines = z.string().transform((text) => text.split("\n").flatMap((line) => line.trim() || []));

/** Values of the inputs as the runner gives them, parsed. */
const inputs = z.object({
  "service-url": baseUrl,
  token: z.string(),
  models: lines,
  targets: z
    .string()
    .transform((text) => text.split(/[\s,]+/).filter((name) => name !== ""))
    .pipe(z.array(targetName)),
  recipe: yamlOf(requestedRecipe).optional(),
  gates: yamlOf(gateLimits).optional(),
  suite: z.string().max(200).optional(),
  timeout: minutes,
  "dry-run": flag,
  download: flag,
} satisfies Record<ActionInputName, z.ZodType>);
export type Inputs = z.output<typeof inputs>;

/**
 * The inputs of the step.
 * @throws InputError with everything that is wrong
 */
export function readInputs(environment: NodeJS.ProcessEnv): Inputs {
  const given = Object.fromEntries(
    Object.entries(actionInputs).map(([name, input]) => {
      const text = environment[`INPUT_${name.toUpperCase()}`]?.trim() ?? "";
      const fallback = "default" in input ? input.default : undefined;
      return [name, text === "" ? fallback : text] as const;
    }),
  );
  const parsed = inputs.safeParse(given);
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.map(({ path, message }) => {
    const name = String(path[0]);
    const text = given[name];
    if (text === undefined) return { message: `Input "${name}" is missing` };
    return { message: `Input "${name}" is ${JSON.stringify(shorten(text))}: ${message}` };
  });
  throw new InputError(problems);
}

function yamlOf<Schema extends z.ZodType>(schema: Schema) {
  return z.string().transform((text, context): z.output<Schema> => {
    const parsed = parseYaml(text, schema);
    if ("value" in parsed) return parsed.value;
    for (const { line, message } of parsed.problems) context.addIssue(`line ${line}: ${message}`);
    return z.NEVER;
  });
}

function shorten(text: string): string {
  return text.length <= 100 ? text : `${text.slice(0, 99)}…`;
}

import type { z } from "zod";
import { type ActionInput, actionInputs } from "../contract/batches/action.ts";
import { truncate } from "../contract/text/truncate.ts";
import { InputError } from "./explain-error.ts";
import { type Inputs, inputsSchema, type ReportingInputs, reportingSchema } from "./inputs.ts";

/** Of an invalid input, in the error message. */
const maxShownCharacters = 100;

/**
 * The inputs of the step, from the runner's environment variables.
 * @throws InputError with all problems
 */
export function readInputs(environment: NodeJS.ProcessEnv): Inputs {
  const texts = readTexts(environment);
  return parseTexts(texts, inputsSchema, missingModelProblems(texts));
}

/**
 * The inputs that say how the step reports. A fork's workflow may lack the others: GitHub gives it
 * no variables of the repository.
 * @throws InputError with all problems
 */
export function readReportingInputs(environment: NodeJS.ProcessEnv): ReportingInputs {
  return parseTexts(readTexts(environment), reportingSchema, []);
}

type Texts = Readonly<Record<string, string | undefined>>;

function parseTexts<Schema extends z.ZodType>(
  texts: Texts,
  schema: Schema,
  missing: readonly string[],
): z.output<Schema> {
  const parsed = schema.safeParse(texts);
  const invalid = (parsed.error?.issues ?? []).map(({ path, message }) => {
    const name = String(path[0]);
    const text = texts[name];
    if (text === undefined) return `Input "${name}" is missing`;
    return `Input "${name}" is ${JSON.stringify(truncate(text, maxShownCharacters))}: ${message}`;
  });
  const problems = [...invalid, ...missing];
  if (!parsed.success || problems.length > 0) {
    throw new InputError(problems.map((message) => ({ message })));
  }
  return parsed.data;
}

function readTexts(environment: NodeJS.ProcessEnv): Texts {
  const table: Readonly<Record<string, ActionInput>> = actionInputs;
  const entries = Object.entries(table).map(([name, input]) => {
    const text = environment[`INPUT_${name.toUpperCase()}`]?.trim() ?? "";
    return [name, text === "" ? staticDefault(input) : text] as const;
  });
  return Object.fromEntries(entries);
}

/** The default, unless it is an expression, which only the runner evaluates. */
function staticDefault(input: ActionInput): string | undefined {
  return input.default?.startsWith("${{") ? undefined : input.default;
}

function missingModelProblems(texts: Texts): string[] {
  if (texts["batch-file"] !== undefined) return [];
  return ["models", "targets"]
    .filter((name) => !texts[name])
    .map((name) => `Input "${name}" is missing, and there is no "batch-file"`);
}

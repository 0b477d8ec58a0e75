import type { z } from "zod";
import { formatProblems } from "../contract/format-problem.ts";
import { parseInput } from "../contract/parse-input.ts";
import { StartError } from "./start-error.ts";

/** @throws StartError that names every invalid variable */
export function parseEnvironment<Settings>(
  settings: z.ZodType<Settings>,
  environment: NodeJS.ProcessEnv,
): Settings {
  const { data, problems } = parseInput(settings, withoutEmpty(environment));
  if (problems === undefined) return data;
  throw new StartError(`The settings are invalid\n${formatProblems(problems)}`);
}

/** To OpenTelemetry a variable that is empty is one that is not set. */
function withoutEmpty(environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const given = Object.entries(environment).filter(
    ([name, value]) => value !== "" || !name.startsWith("OTEL_"),
  );
  return Object.fromEntries(given);
}

import { z } from "zod";
import { StartError } from "./start-error.ts";

/** @throws StartError that names every invalid variable */
export function parseEnvironment<Settings>(
  settings: z.ZodType<Settings>,
  environment: NodeJS.ProcessEnv,
): Settings {
  const parsed = settings.safeParse(withoutEmpty(environment));
  if (parsed.success) return parsed.data;
  throw new StartError(`The settings are invalid\n${z.prettifyError(parsed.error)}`, {
    cause: parsed.error,
  });
}

/** To OpenTelemetry a variable that is empty is one that is not set. */
function withoutEmpty(environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const given = Object.entries(environment).filter(
    ([name, value]) => value !== "" || !name.startsWith("OTEL_"),
  );
  return Object.fromEntries(given);
}

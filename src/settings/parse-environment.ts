import { BlockList, isIP } from "node:net";
import { parse } from "yaml";
import { z } from "zod";
import { formatProblems } from "../contract/format-problem.ts";
import { parseInput } from "../contract/parse-input.ts";
import { defaultProject } from "../contract/project.ts";
import { dnsLabel } from "../contract/text/kubernetes-names.ts";

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

/** A whole number of at most 15 digits. */
export const number = z
  .string()
  .regex(/^\d{1,15}$/, { error: "must be a whole number of at most 15 digits" })
  .transform(Number);

/** A text that is not empty: a variable that is set to nothing is an error. */
export const text = z.string().min(1);

/** @throws Error that repeats nothing of the content, which may be secret */
export function parseYaml(content: string): unknown {
  try {
    return parse(content);
  } catch (error) {
    const [problem] = String(error)
      .replace(/^\w+: /, "")
      .split(":\n", 1);
    throw new SyntaxError(problem);
  }
}

/** A value with named parts in YAML, which includes JSON, such as `{jobs: 90, logs: 30}`. */
export function yaml<Schema extends z.ZodType>(schema: Schema) {
  return z
    .string()
    .transform((content, context): unknown => {
      try {
        return parseYaml(content);
      } catch (error) {
        context.addIssue(`must be YAML: ${error instanceof Error ? error.message : String(error)}`);
        return z.NEVER;
      }
    })
    .pipe(schema as z.ZodType<z.output<Schema>>);
}

/** Variables that look like settings but are not, such as misspelt ones. */
export function findUnknownVariables(
  { shape }: z.ZodObject,
  environment: NodeJS.ProcessEnv,
): string[] {
  return Object.keys(environment)
    .filter((name) => name.startsWith("MOS_") && !Object.hasOwn(shape, name))
    .toSorted();
}

/** Why a process cannot start. The message is complete without a stack. */
export class StartError extends Error {
  override readonly name = "StartError";
}

/**
 * What a process prints before it exits: a StartError's message, the stack of any other error and
 * what caused it.
 */
export function describeStartError(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error instanceof StartError) return error.message;
  const text = error.stack ?? error.message;
  return error.cause === undefined ? text : `${text}\ncaused by ${describeStartError(error.cause)}`;
}

const sizes = { 4: 32, 6: 128 } as const;

/**
 * A check whether an address lies in a network of the list, such as `10.0.0.0/8,2001:db8::1`.
 * Undefined where the list has something else.
 */
export function parseNetworks(list: string): ((address: string) => boolean) | undefined {
  const networks = new BlockList();
  const entries = list.split(",").flatMap((entry) => entry.trim() || []);
  for (const entry of entries) {
    const [address = "", prefix, ...others] = entry.split("/");
    const version = isIP(address);
    if ((version !== 4 && version !== 6) || others.length > 0) return undefined;
    const size = sizes[version];
    if (prefix !== undefined && (!/^\d{1,3}$/.test(prefix) || Number(prefix) > size))
      return undefined;
    networks.addSubnet(address, Number(prefix ?? size), `ipv${version}`);
  }
  return (address) => {
    const version = isIP(address);
    return (version === 4 || version === 6) && networks.check(address, `ipv${version}`);
  };
}

/** In place of an address to listen on: every address of the machine, IPv6 and IPv4. */
export const everyAddress = "*";

/** Names of namespaces, separated by commas, or `*` for every one. */
export const namespaceList = z
  .string()
  .default("")
  .transform((list, context): readonly string[] | "all" => {
    if (list.trim() === "*") return "all";
    const names = list.split(",").map((name) => name.trim());
    const listed = names.filter((name) => name !== "");
    for (const name of listed) {
      const problem = nameProblem(name);
      if (problem !== undefined) context.addIssue(`${problem}, and not "${name}"`);
    }
    return listed;
  });

/** The project of that name is the installation's own namespace, which is always served. */
function nameProblem(name: string): string | undefined {
  if (name === defaultProject) return `must be other namespaces than "${defaultProject}"`;
  return dnsLabel.safeParse(name).success ? undefined : "must be names of namespaces, or *";
}

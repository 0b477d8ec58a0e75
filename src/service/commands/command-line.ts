import { StartError } from "../../settings/parse-environment.ts";

/**
 * The arguments of a command that takes so many and has no options.
 * @throws StartError for an option or another number of arguments
 */
export function parsePositionals(
  args: readonly string[],
  count: number,
  usage: string,
): readonly string[] {
  const option = args.find((arg) => arg.startsWith("-"));
  if (option !== undefined) {
    throw new StartError(`Option "${option}" is not known\nUsage: ${usage}`);
  }
  if (args.length === count) return args;
  const expected = count === 1 ? "1 is" : `${count || "none"} are`;
  const given = args.length === 1 ? "1 argument was" : `${args.length} arguments were`;
  throw new StartError(`${given} given, and ${expected} expected\nUsage: ${usage}`);
}

const settingsPage = "docs/reference.md#settings-of-the-service";

/** What `--help` prints of the commands besides the service itself. */
export function describeCommands(
  commands: Iterable<{ readonly usage: string; readonly summary: string }>,
): string {
  const lines = Array.from(commands, ({ usage, summary }) => `  ${usage}\n      ${summary}\n`);
  return [
    "Usage: node src/service/main.ts [COMMAND]",
    "",
    `Without a command the service starts. Settings are environment variables: ${settingsPage}`,
    "",
    "Commands:",
    ...lines,
  ].join("\n");
}

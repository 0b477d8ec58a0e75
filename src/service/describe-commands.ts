/** How a command besides the service itself is called, and what it does. */
interface CommandDescription {
  readonly usage: string;
  readonly summary: string;
}

const settingsPage = "docs/reference.md#settings-of-the-service";

/** What `--help` prints. */
export function describeCommands(commands: Iterable<CommandDescription>): string {
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

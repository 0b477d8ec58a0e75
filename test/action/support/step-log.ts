/** A command to the runner, as `::error file=a.yaml,line=3::Message` in what a step prints. */
interface WorkflowCommand {
  readonly command: string;
  readonly properties: Readonly<Record<string, string>>;
  readonly message: string;
}

export interface StepLog {
  readonly commands: readonly WorkflowCommand[];
  /** The lines that people see: without commands, and with secrets masked. */
  readonly visibleLines: readonly string[];
}

/** Reads what a step printed as the runner does: where commands are stopped, lines that look like some are shown. */
export function readStepLog(log: string): StepLog {
  const commands: WorkflowCommand[] = [];
  const visibleLines: string[] = [];
  const secrets = new Set<string>();
  let stopMark: string | undefined;
  for (const line of log.replace(/\r?\n$/, "").split(/\r?\n/)) {
    const command = parseCommand(line);
    if (stopMark === undefined && command !== undefined) {
      commands.push(command);
      if (command.command === "stop-commands") stopMark = command.message;
      if (command.command === "add-mask")
        for (const secret of command.message.split("\n")) secrets.add(secret);
      if (command.command === "group") visibleLines.push(mask(command.message, secrets));
    } else if (stopMark !== undefined && command?.command === stopMark) stopMark = undefined;
    else visibleLines.push(mask(line, secrets));
  }
  return { commands, visibleLines };
}

function parseCommand(line: string): WorkflowCommand | undefined {
  // The second form is an older one, which the runner finds in the middle of a line too.
  const match =
    /^\s*::(?<command>[\w-]+)(?: (?<pairs>.*?))?::(?<message>.*)$/.exec(line) ??
    /##\[(?<command>[\w-]+)(?: (?<pairs>[^\]]*))?\](?<message>.*)$/.exec(line);
  const { command = "", pairs = "", message = "" } = match?.groups ?? {};
  if (command === "") return undefined;
  const properties = pairs.split(",").flatMap((pair) => {
    const [, name, value = ""] = /^\s*(\w+)=(.*)$/.exec(pair) ?? [];
    return name === undefined ? [] : [[name, unescaped(value)] as const];
  });
  return { command, properties: Object.fromEntries(properties), message: unescaped(message) };
}

const escapes: Readonly<Record<string, string>> = {
  "%0D": "\r",
  "%0A": "\n",
  "%3A": ":",
  "%2C": ",",
  "%25": "%",
};

function unescaped(text: string): string {
  return text.replaceAll(/%(0D|0A|3A|2C|25)/g, (code) => escapes[code] ?? code);
}

function mask(line: string, secrets: ReadonlySet<string>): string {
  return [...secrets]
    .filter((secret) => secret !== "")
    .reduce((text, secret) => text.replaceAll(secret, "***"), line);
}

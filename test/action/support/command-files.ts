import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";

const names = [
  "GITHUB_OUTPUT",
  "GITHUB_STATE",
  "GITHUB_ENV",
  "GITHUB_PATH",
  "GITHUB_STEP_SUMMARY",
] as const;
const maxSummaryBytes = 1_048_576;

/** Files through which a step gives the runner its outputs, its state and its summary. */
export type CommandFiles = Readonly<Record<(typeof names)[number], string>>;

/** What a step left in its command files. */
export interface CommandFileContents {
  readonly outputs: Readonly<Record<string, string>>;
  readonly state: Readonly<Record<string, string>>;
  /** Markdown of the job's summary; empty where it is too long, since GitHub then shows none of it. */
  readonly summary: string;
}

export async function makeCommandFiles(folder: string): Promise<CommandFiles> {
  await mkdir(folder);
  const files = Object.fromEntries(
    names.map((name) => [name, join(folder, name.toLowerCase())]),
  ) as CommandFiles;
  for (const file of Object.values(files)) await writeFile(file, "");
  return files;
}

export async function readCommandFiles(files: CommandFiles): Promise<CommandFileContents> {
  const summary = await readFile(files.GITHUB_STEP_SUMMARY);
  return {
    outputs: keyValues(await readFile(files.GITHUB_OUTPUT, "utf8")),
    state: keyValues(await readFile(files.GITHUB_STATE, "utf8")),
    summary: summary.length > maxSummaryBytes ? "" : summary.toString("utf8"),
  };
}

/** `NAME=value`, or `NAME<<MARK`, lines and `MARK`. */
function keyValues(text: string): Record<string, string> {
  const values: Record<string, string> = {};
  const lines = text.split("\n").values();
  for (const line of lines) {
    if (line === "") continue;
    const [, name = "", sign = "", rest = ""] = /^(.*?)(=|<<)(.*)$/.exec(line) ?? [];
    if (name === "") throw new Error(`Invalid format of a command file: ${line}`);
    values[name] = sign === "=" ? rest : linesUntil(rest.trim(), lines);
  }
  return values;
}

function linesUntil(mark: string, lines: Iterator<string>): string {
  const kept: string[] = [];
  for (;;) {
    const { value, done } = lines.next();
    if (done === true) throw new Error(`Matching delimiter not found: ${mark}`);
    if (value === mark) return kept.join("\n");
    kept.push(value);
  }
}

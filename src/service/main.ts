import { jsonLog } from "../log/json-log.ts";
import { surviveLostOutput } from "../log/survive-lost-output.ts";
import {
  describeStartError,
  findUnknownVariables,
  parseEnvironment,
  StartError,
} from "../settings/parse-environment.ts";
import { backupUsage, runBackupCommand } from "./commands/backup-command.ts";
import { describeCommands } from "./commands/command-line.ts";
import { moveUsage, runMoveCommand } from "./commands/move-command.ts";
import { projectUsage, runProjectCommand } from "./commands/project-command.ts";
import { recordsPlace } from "./storage-folder/data-directory.ts";
import { restoreUsage, runRestoreCommand } from "./commands/restore-command.ts";
import { settings } from "./settings/settings.ts";
import { runSignInCommand, signInUsage } from "./commands/sign-in-command.ts";
import { startService } from "./start-service.ts";
import { reportFirstToken } from "./first-sign-in.ts";
import { runTokenCommand, tokenUsage } from "./commands/token-command.ts";

/** Where programs, CUDA's libraries and compiled modules are, and which GPUs are used. */
const inheritedByWorkers = [
  "PATH",
  "HOME",
  "NODE_COMPILE_CACHE",
  "LD_LIBRARY_PATH",
  "CUDA_VISIBLE_DEVICES",
];

async function serve(): Promise<void> {
  surviveLostOutput(process.stdout, process.stderr);
  const now = () => new Date();
  const log = jsonLog(process.stderr, now);
  // A task in the background that fails must not take everybody's requests with it.
  process.on("unhandledRejection", (error) => log("error", "A task failed", { error }));
  const workerEnvironment = Object.fromEntries(
    inheritedByWorkers.flatMap((name) => {
      const value = process.env[name];
      return value === undefined ? [] : [[name, value]];
    }),
  );
  const dependencies = { now, log, workerEnvironment };
  const wanted = parseEnvironment(settings, process.env);
  const names = findUnknownVariables(settings, process.env);
  if (names.length > 0) log("warn", "Variables of the environment are not settings", { names });
  const service = await startService(wanted, dependencies);
  const stop = () => {
    service.close().then(() => process.exit(0), printErrorAndExit);
  };
  process.once("SIGTERM", stop);
  process.once("SIGINT", stop);
  process.stdout.write(`Listening on ${service.url}/v1\n`);
  if (service.signInLink !== undefined) {
    process.stdout.write(`Dashboard, by a link that can be used once: ${service.signInLink}\n`);
  }
  if (service.firstToken !== undefined) {
    await reportFirstToken(service.firstToken, process.stdout, wanted.MOS_DATA_DIR);
  }
}

/** Commands besides the service itself. */
const commands = new Map([
  ["token", { run: runTokenCommand, usage: tokenUsage, summary: "Prints a new access token." }],
  ["project", { run: runProjectCommand, usage: projectUsage, summary: "Creates a project." }],
  ["sign-in", { run: runSignInCommand, usage: signInUsage, summary: "Prints a sign-in link." }],
  [
    "backup",
    {
      run: runBackupCommand,
      usage: backupUsage,
      summary: "Copies records and files into an empty folder.",
    },
  ],
  [
    "restore",
    {
      run: runRestoreCommand,
      usage: restoreUsage,
      summary: "Copies a backup into an empty MOS_DATA_DIR.",
    },
  ],
  [
    "move",
    {
      run: runMoveCommand,
      usage: moveUsage,
      summary: "Moves the records of MOS_DATA_DIR to MOS_DATABASE_URL, and its files to a bucket.",
    },
  ],
]);

function asksForHelp(args: readonly string[]): boolean {
  return args.includes("--help") || args.includes("-h");
}

async function main([name, ...args]: readonly string[]): Promise<void> {
  if (name === undefined) return serve();
  const help = describeCommands(commands.values());
  if (asksForHelp([name])) return void process.stdout.write(help);
  const command = commands.get(name);
  if (command === undefined) throw new StartError(`Command "${name}" is not known\n${help}`);
  if (asksForHelp(args)) {
    return void process.stdout.write(`Usage: ${command.usage}\n${command.summary}\n`);
  }
  const wanted = parseEnvironment(settings, process.env);
  process.stdout.write(`${await command.run(args, recordsPlace(wanted), wanted)}\n`);
}

function printErrorAndExit(error: unknown): never {
  process.stderr.write(`${describeStartError(error)}\n`);
  process.exit(1);
}

main(process.argv.slice(2)).catch(printErrorAndExit);

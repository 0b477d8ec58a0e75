import { jsonLog } from "../log/json-log.ts";
import { describeStartError } from "../settings/describe-start-error.ts";
import { parseEnvironment } from "../settings/parse-environment.ts";
import { StartError } from "../settings/start-error.ts";
import { backupUsage, runBackupCommand } from "./backup-command.ts";
import { moveUsage, runMoveCommand } from "./move-command.ts";
import { projectUsage, runProjectCommand } from "./project-command.ts";
import { recordsPlace } from "./records-place.ts";
import { restoreUsage, runRestoreCommand } from "./restore-command.ts";
import { settings } from "./settings.ts";
import { runSignInCommand, signInUsage } from "./sign-in-command.ts";
import { startService } from "./start-service.ts";
import { reportFirstToken } from "./report-first-token.ts";
import { runTokenCommand, tokenUsage } from "./token-command.ts";

/** Node reads modules that it has compiled before from the last one, where it is set. */
const inheritedByWorkers = ["PATH", "HOME", "NODE_COMPILE_CACHE"];

async function serve(): Promise<void> {
  const now = () => new Date();
  const log = jsonLog(process.stderr, now);
  // A task in the background that fails must not take everybody's requests with it.
  process.on("unhandledRejection", (error) => log("error", "A task failed", { error }));
  const workerEnvironment = Object.fromEntries(
    inheritedByWorkers.map((name) => [name, process.env[name] ?? ""]),
  );
  const dependencies = { now, log, workerEnvironment };
  const wanted = parseEnvironment(settings, process.env);
  const service = await startService(wanted, dependencies);
  process.stdout.write(`Listening on ${service.url}/v1\n`);
  if (service.signInLink !== undefined) {
    process.stdout.write(`Dashboard, by a link that can be used once: ${service.signInLink}\n`);
  }
  if (service.firstToken !== undefined) {
    const place = { output: process.stdout, directory: wanted.MOS_DATA_DIR };
    await reportFirstToken(service.firstToken, place);
  }
  const stop = () => {
    service.close().then(() => process.exit(0), printErrorAndExit);
  };
  process.once("SIGTERM", stop);
  process.once("SIGINT", stop);
}

/** Commands besides the service itself. */
const commands = new Map([
  ["token", { run: runTokenCommand, usage: tokenUsage }],
  ["project", { run: runProjectCommand, usage: projectUsage }],
  ["backup", { run: runBackupCommand, usage: backupUsage }],
  ["move", { run: runMoveCommand, usage: moveUsage }],
  ["restore", { run: runRestoreCommand, usage: restoreUsage }],
  ["sign-in", { run: runSignInCommand, usage: signInUsage }],
]);

async function main([name, ...args]: readonly string[]): Promise<void> {
  if (name === undefined) return serve();
  const command = commands.get(name);
  if (command === undefined) {
    const usages = Array.from(commands.values(), ({ usage }) => usage);
    throw new StartError(`Command "${name}" is not known\nUsage: ${usages.join("\n       ")}`);
  }
  const wanted = parseEnvironment(settings, process.env);
  process.stdout.write(`${await command.run(args, recordsPlace(wanted), wanted)}\n`);
}

function printErrorAndExit(error: unknown): never {
  process.stderr.write(`${describeStartError(error)}\n`);
  process.exit(1);
}

main(process.argv.slice(2)).catch(printErrorAndExit);

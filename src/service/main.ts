import { z } from "zod";
import { TargetsFileError } from "../settings/read-targets.ts";
import { jsonLog } from "../log/json-log.ts";
import { settings } from "./settings.ts";
import { StartError } from "../settings/start-error.ts";
import { startService } from "./start-service.ts";
import { runTokenCommand, tokenUsage } from "./token-command.ts";

function readSettings() {
  const parsed = settings.safeParse(process.env);
  if (parsed.success) return parsed.data;
  throw new StartError(`The settings are invalid\n${z.prettifyError(parsed.error)}`);
}

async function serve(): Promise<void> {
  const now = () => new Date();
  const log = jsonLog(process.stderr, now);
  const workerEnvironment = { PATH: process.env["PATH"] ?? "", HOME: process.env["HOME"] ?? "" };
  const service = await startService(readSettings(), { now, log, workerEnvironment });
  process.stdout.write(`Listening on ${service.url}/v1\n`);
  if (service.firstToken !== undefined) {
    process.stdout.write(`Access token with every scope, shown this once: ${service.firstToken}\n`);
  }
  const stop = () => {
    service.close().then(() => process.exit(0), printErrorAndExit);
  };
  process.once("SIGTERM", stop);
  process.once("SIGINT", stop);
}

async function main([command, ...args]: readonly string[]): Promise<void> {
  if (command === undefined) await serve();
  else if (command === "token") {
    process.stdout.write(`${await runTokenCommand(args, readSettings().MOS_DATA_DIR)}\n`);
  } else throw new StartError(`Command "${command}" is not known\nUsage: ${tokenUsage}`);
}

function printErrorAndExit(error: unknown): never {
  const isPlain = error instanceof StartError || error instanceof TargetsFileError;
  const text = isPlain ? error.message : error instanceof Error ? error.stack : String(error);
  process.stderr.write(`${text}\n`);
  process.exit(1);
}

main(process.argv.slice(2)).catch(printErrorAndExit);

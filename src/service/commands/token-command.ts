import { parseArgs } from "node:util";
import { createToken } from "../../auth/create-token.ts";
import { formatProblem } from "../../contract/format-problem.ts";
import { parseInput } from "../../contract/parse-input.ts";
import { type TokenRequest, tokenRequest } from "../../contract/people/token.ts";
import { defaultProject } from "../../contract/project.ts";
import { errorMessage } from "../../log/error-message.ts";
import { StartError } from "../../settings/parse-environment.ts";
import { projectUsage } from "./project-command.ts";
import type { RecordsPlace } from "../storage-folder/data-directory.ts";
import { withRecords } from "./with-records.ts";

export const tokenUsage =
  "token create --name NAME --scopes SCOPE,SCOPE [--expires-days DAYS|never] [--project PROJECT]";

/** Creates a token in the service's records, whether the service runs or not. */
export async function runTokenCommand(
  args: readonly string[],
  place: RecordsPlace,
): Promise<string> {
  const request = parseTokenRequest(args);
  return withRecords(place, async (records, now) => {
    const { project = defaultProject } = request;
    if (!(await records.projects.has(project))) {
      const create = `node src/service/main.ts ${projectUsage}`;
      throw new StartError(`There is no project "${project}"; create it with: ${create}`);
    }
    const command = { action: "createToken", tokenId: null, tokenName: "token command" };
    const audit = { ...command, project };
    return (await createToken(records, { ...request, project, now, audit })).token;
  });
}

/** The option that gives each field of the request. */
const optionOfField: Readonly<Record<string, string>> = {
  name: "--name",
  scopes: "--scopes",
  expiresInDays: "--expires-days",
  project: "--project",
};

function parseTokenRequest(args: readonly string[]): TokenRequest {
  const { name, scopes, project, "expires-days": days } = parseOptions(args);
  const { data, problems } = parseInput(tokenRequest, {
    name,
    // Where there are none, the message names those that there are.
    scopes: (scopes ?? "").split(","),
    expiresInDays: parseDays(days),
    project,
  });
  if (problems === undefined) return data;
  const lines = problems.map(({ path: [field, ...rest], message }) => {
    return formatProblem({ path: [optionOfField[String(field)] ?? "", ...rest], message });
  });
  throw new StartError(`${lines.join("\n")}\nUsage: ${tokenUsage}`);
}

function parseDays(text: string | undefined): number | string | null | undefined {
  if (text === "never") return null;
  return text !== undefined && /^-?\d{1,15}(\.\d*)?$/.test(text) ? Number(text) : text;
}

function parseOptions(args: readonly string[]) {
  const options = {
    name: { type: "string" },
    scopes: { type: "string" },
    "expires-days": { type: "string" },
    project: { type: "string" },
  } as const;
  try {
    const { values, positionals } = parseArgs({ args: [...args], options, allowPositionals: true });
    if (positionals.join(" ") === "create") return values;
  } catch (cause) {
    throw new StartError(`${errorMessage(cause)}\nUsage: ${tokenUsage}`, { cause });
  }
  throw new StartError(`Usage: ${tokenUsage}`);
}

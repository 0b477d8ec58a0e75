import { formatProblems } from "../../contract/format-problem.ts";
import { parseInput } from "../../contract/parse-input.ts";
import { defaultProject, projectName } from "../../contract/project.ts";
import { StartError } from "../../settings/parse-environment.ts";
import { parsePositionals } from "./command-line.ts";
import type { RecordsPlace } from "../storage-folder/data-directory.ts";
import { withRecords } from "./with-records.ts";

export const projectUsage = "project create NAME";

/** Creates a project in the service's records, whether the service runs or not. */
export async function runProjectCommand(
  args: readonly string[],
  place: RecordsPlace,
): Promise<string> {
  const name = parseName(args);
  const audit = {
    project: defaultProject,
    action: "createProject",
    tokenId: null,
    tokenName: "project command",
  };
  const { project } = await withRecords(place, (records) => records.projects.ensure(name, audit));
  return project.name;
}

function parseName(args: readonly string[]): string {
  const [command, name] = parsePositionals(args, 2, projectUsage);
  if (command !== "create") throw new StartError(`Usage: ${projectUsage}`);
  const { data, problems } = parseInput(projectName, name);
  if (problems === undefined) return data;
  throw new StartError(`NAME ${formatProblems(problems)}\nUsage: ${projectUsage}`);
}

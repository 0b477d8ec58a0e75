import { z } from "zod";
import { defaultProject, projectName } from "../contract/project.ts";
import { StartError } from "../settings/start-error.ts";
import type { RecordsPlace } from "./records-place.ts";
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

function parseName([command, name, ...others]: readonly string[]): string {
  if (command !== "create" || others.length > 0) throw new StartError(`Usage: ${projectUsage}`);
  const parsed = projectName.safeParse(name);
  if (parsed.success) return parsed.data;
  throw new StartError(`${z.prettifyError(parsed.error)}\nUsage: ${projectUsage}`);
}

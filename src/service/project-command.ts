import { z } from "zod";
import { projectName } from "../contract/project.ts";
import { StartError } from "../settings/start-error.ts";
import { withRecords } from "./with-records.ts";

export const projectUsage = "project create NAME";

/** Creates a project in the service's records, whether the service runs or not. */
export async function runProjectCommand(
  args: readonly string[],
  directory: string,
): Promise<string> {
  const name = parseName(args);
  const { project } = await withRecords(directory, (records) => records.projects.ensure(name));
  return project.name;
}

function parseName([command, name, ...others]: readonly string[]): string {
  if (command !== "create" || others.length > 0) throw new StartError(`Usage: ${projectUsage}`);
  const parsed = projectName.safeParse(name);
  if (parsed.success) return parsed.data;
  throw new StartError(`${z.prettifyError(parsed.error)}\nUsage: ${projectUsage}`);
}

import { z } from "zod";
import { labelName } from "../contract/text/kubernetes-names.ts";
import { defaultProject } from "../contract/project.ts";

/** Names of namespaces, separated by commas, or `*` for every one. */
export const namespaceList = z
  .string()
  .default("")
  .transform((list, context): readonly string[] | "all" => {
    if (list.trim() === "*") return "all";
    const names = list.split(",").map((name) => name.trim());
    const listed = names.filter((name) => name !== "");
    for (const name of listed) {
      const problem = nameProblem(name);
      if (problem !== undefined) context.addIssue(`${problem}, and not "${name}"`);
    }
    return listed;
  });

/** The project of that name is the installation's own namespace, which is always served. */
function nameProblem(name: string): string | undefined {
  if (name === defaultProject) return `must be other namespaces than "${defaultProject}"`;
  return labelName.safeParse(name).success ? undefined : "must be names of namespaces, or *";
}

import { z } from "zod";
import { dnsLabel } from "./text/kubernetes-names.ts";

/** The default project; its administrators are the installation's. */
export const defaultProject = "default";

/** Also usable as the name of a namespace. */
export const projectName = dnsLabel.describe(
  "1 to 63 lower-case letters, digits and hyphens, with no hyphen at an end.",
);

/** A tenant of the service, which sees nothing of the others. */
export const project = z
  .object({ name: projectName, createdAt: z.iso.datetime() })
  .meta({ id: "Project" });
export type Project = z.infer<typeof project>;

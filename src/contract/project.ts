import { z } from "zod";

/** The project of everything that names no other; its administrators are the installation's. */
export const defaultProject = "default";

/** Also usable as the name of a namespace. */
export const projectName = z
  .string()
  .regex(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/)
  .describe("1 to 63 lower-case letters, digits and hyphens, none of them at an end.");

/** A tenant of the service, which sees nothing of the others. */
export const project = z
  .object({ name: projectName, createdAt: z.iso.datetime() })
  .meta({ id: "Project" });
export type Project = z.infer<typeof project>;

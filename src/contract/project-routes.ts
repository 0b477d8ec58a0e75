import { z } from "zod";
import { project, projectName } from "./project.ts";
import type { Route } from "./route.ts";

export const projectRoutes = {
  listProjects: {
    method: "GET",
    path: "/projects",
    summary: "List projects",
    action: "manageProjects",
    replies: {
      200: { json: z.object({ projects: z.array(project) }).meta({ id: "ProjectList" }) },
    },
    errors: [],
  },
  createProject: {
    method: "PUT",
    path: "/projects/{project}",
    summary: "Create a project",
    action: "manageProjects",
    params: z.object({ project: projectName }),
    audited: true,
    replies: { 200: { json: project }, 201: { json: project } },
    errors: [],
  },
} as const satisfies Record<string, Route>;

import type { RouteHandlers } from "./route-handlers.ts";

export const projectHandlers: Pick<RouteHandlers, "listProjects" | "createProject"> = {
  async listProjects({ records }) {
    return { status: 200, json: { projects: await records.projects.list() } };
  },

  async createProject({ records }, { params, audit }) {
    const { project, isNew } = await records.projects.ensure(params.project, audit);
    return { status: isNew ? 201 : 200, json: project };
  },
};

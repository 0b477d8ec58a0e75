import { groupPrefix } from "../../contract/people/member.ts";
import type { RouteHandlers } from "../http/bind-routes.ts";
import { validationError } from "../http/field-errors.ts";
import { notFoundError } from "../http/problem-response.ts";
import type { ServerContext } from "../http/server-context.ts";

export const projectHandlers: Pick<RouteHandlers, "listProjects" | "createProject"> = {
  async listProjects({ records }) {
    return { status: 200, json: { projects: await records.projects.list() } };
  },

  async createProject({ records }, { params, audit }) {
    const { project, isNew } = await records.projects.ensure(params.project, audit);
    return { status: isNew ? 201 : 200, json: project };
  },
};

type MemberHandlers = Pick<
  RouteHandlers,
  "findPeople" | "listMembers" | "putMember" | "removeMember"
>;

export const memberHandlers: MemberHandlers = {
  async findPeople({ records }, { query: { email } }) {
    return { status: 200, json: { people: await records.members.findPeople(email) } };
  },

  async listMembers({ records }, { params }) {
    return { status: 200, json: { members: await records.members.list(params.project) } };
  },

  async putMember(context, { params: { project, member }, body: { role }, audit }) {
    const issuer = member.startsWith(groupPrefix) ? requireIssuer(context) : null;
    const stored = await context.records.members.put({ project, member, issuer, role }, audit);
    if (stored === undefined) throw notFoundError("person", member);
    return { status: 200, json: stored };
  },

  async removeMember({ records }, { params, audit }) {
    if (await records.members.remove(params, audit)) return { status: 204 };
    throw notFoundError("member", params.member, `of project "${params.project}"`);
  },
};

/** Groups are those of the single sign-on, so that another issuer's of the same name are not. */
function requireIssuer({ singleSignOn }: ServerContext): string {
  if (singleSignOn !== undefined) return singleSignOn.issuer;
  const message = "Must be the id of a person: there is no single sign-on to provide groups";
  throw validationError([{ pointer: "path/member", message }]);
}

export const usageHandlers: Pick<RouteHandlers, "getUsage"> = {
  async getUsage({ records, quotas, executor }, { caller: { project } }) {
    const { waiting, running } = await records.usage.countJobs(project);
    const { requests, storage, waitingJobs } = quotas;
    const left = Math.max(0, Math.floor(requests.countLeft(project)));
    return {
      status: 200,
      json: {
        project,
        waitingJobs: { used: waiting, limit: waitingJobs },
        runningJobs: { used: running, limit: executor.projectRunningJobs ?? null },
        storedBytes: { used: await storage.usedBytes(project), limit: storage.maxBytes },
        requestsPerMinute: { used: requests.perMinute - left, limit: requests.perMinute },
      },
    };
  },
};

export const auditHandlers: Pick<RouteHandlers, "listAudit"> = {
  async listAudit({ records }, { caller, query }) {
    return { status: 200, json: await records.audit.list(caller.project, query) };
  },
};

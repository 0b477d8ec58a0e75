import { groupPrefix } from "../contract/people/member.ts";
import { validationError } from "./field-errors.ts";
import { notFoundError } from "./not-found-error.ts";
import type { RouteHandlers } from "./route-handlers.ts";
import type { ServerContext } from "./server-context.ts";

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
  const message = "Must be the id of a person: there is no single sign-on, which says groups";
  throw validationError([{ pointer: "path/member", message }]);
}

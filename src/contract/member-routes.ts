import { z } from "zod";
import { member, memberName, memberRequest } from "./member.ts";
import { person, personQuery } from "./person.ts";
import { projectName } from "./project.ts";
import type { Route } from "./route.ts";

const params = z.object({ project: projectName, member: memberName });

export const memberRoutes = {
  findPeople: {
    method: "GET",
    path: "/people",
    summary: "Find people who have signed in, by their e-mail address",
    action: "manageMembers",
    query: personQuery,
    replies: { 200: { json: z.object({ people: z.array(person) }).meta({ id: "PersonList" }) } },
    errors: [],
  },
  listMembers: {
    method: "GET",
    path: "/projects/{project}/members",
    summary: "List the members of a project, and their roles",
    action: "manageMembers",
    names: "project",
    params: z.object({ project: projectName }),
    replies: { 200: { json: z.object({ members: z.array(member) }).meta({ id: "MemberList" }) } },
    errors: ["not_found"],
  },
  putMember: {
    method: "PUT",
    path: "/projects/{project}/members/{member}",
    summary: "Give a person or a group a role in a project",
    action: "manageMembers",
    names: "project",
    params,
    body: memberRequest,
    bodyBytes: 1024,
    audited: true,
    replies: { 200: { json: member } },
    errors: ["unsupported_media_type", "payload_too_large", "not_found", "too_many_members"],
  },
  removeMember: {
    method: "DELETE",
    path: "/projects/{project}/members/{member}",
    summary: "Take a person's or a group's role in a project away, within five seconds everywhere",
    action: "manageMembers",
    names: "project",
    params,
    audited: true,
    replies: { 204: { empty: true } },
    errors: ["not_found"],
  },
} as const satisfies Record<string, Route>;

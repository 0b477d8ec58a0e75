import { z } from "zod";
import type { Route } from "./route.ts";
import { auditPage, auditQuery } from "../people/audit.ts";
import { member, memberName, memberRequest } from "../people/member.ts";
import { person, personQuery } from "../people/person.ts";
import { usage } from "../people/usage.ts";
import { project, projectName } from "../project.ts";

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

export const usageRoutes = {
  getUsage: {
    method: "GET",
    path: "/usage",
    summary: "Read how much of its quotas the project uses",
    action: "readUsage",
    replies: { 200: { json: usage } },
    errors: [],
  },
} as const satisfies Record<string, Route>;

export const auditRoutes = {
  listAudit: {
    method: "GET",
    path: "/audit",
    summary: "List who changed what, newest first",
    action: "readAudit",
    query: auditQuery,
    replies: { 200: { json: auditPage } },
    errors: ["invalid_cursor"],
  },
} as const satisfies Record<string, Route>;

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

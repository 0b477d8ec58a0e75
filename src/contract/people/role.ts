import { z } from "zod";
import { defaultProject } from "../project.ts";
import type { Scope } from "./token.ts";

/** Every role of members of a project, the weakest first, and the scopes that it gives. */
export const roleTable = {
  viewer: { scopes: ["jobs:read"], does: "Reads jobs, batches, logs, artifacts and usage." },
  developer: {
    scopes: [
      "jobs:read",
      "jobs:write",
      "models:write",
      "baselines:write",
      "webhooks:write",
      "tokens:write",
    ],
    does: "Also starts and cancels work, uploads models, and has tokens of its own.",
  },
  admin: {
    scopes: ["admin"],
    does: "Also manages members and tokens, and reads the audit; in `default` of all projects.",
  },
} as const satisfies Record<string, RoleKind>;

interface RoleKind {
  readonly scopes: readonly [Scope, ...Scope[]];
  readonly does: string;
}

export type Role = keyof typeof roleTable;
export const role = z.enum(Object.keys(roleTable) as [Role, ...Role[]]);

/** A project of a person, and what the person is there. */
export interface Membership {
  readonly project: string;
  readonly role: Role;
}

/** The strongest role that memberships give in a project; undefined where they give none. */
export function findRole(memberships: readonly Membership[], project: string): Role | undefined {
  const given = memberships.filter((each) => each.project === project || isInstallation(each));
  return role.options.findLast((each) => given.some((membership) => membership.role === each));
}

/** Administrators of the project `default` are those of the installation. */
export function isInstallation({ project, role: given }: Membership): boolean {
  return project === defaultProject && given === "admin";
}

/** Those of the scopes that are among the allowed ones; `admin` stands for all. */
export function restrictScopes(
  scopes: readonly Scope[],
  allowed: readonly Scope[],
): readonly Scope[] {
  if (allowed.includes("admin")) return scopes;
  if (scopes.includes("admin")) return allowed;
  return scopes.filter((each) => allowed.includes(each));
}

import { z } from "zod";
import { type Action, permissionTable } from "./permissions.ts";
import { role } from "./role.ts";
import { scope } from "./token.ts";
import { personId, sessionId, tokenId } from "../id.ts";
import { projectName } from "../project.ts";

/** Body of `POST /sessions`. */
export const signInRequest = z
  .strictObject({
    secret: z
      .string()
      .max(43)
      .regex(/^[\w-]{43}$/, { error: "must be what follows # in a sign-in link" })
      .describe("What follows `#` in a sign-in link. It can be used once."),
  })
  .meta({ id: "SignInRequest" });

/** Body of `PUT /sessions/self`. */
export const sessionUpdate = z.strictObject({ project: projectName }).meta({ id: "SessionUpdate" });

const signInMethods = ["link", "single-sign-on"] as const;
export type SignInMethod = (typeof signInMethods)[number];

/** How people can sign in. */
export const signInMethodList = z
  .object({
    singleSignOn: z.string().nullable().describe("Host of the single sign-on; null without one."),
  })
  .meta({ id: "SignInMethods" });

/** A person who is signed in with a browser. */
export const session = z
  .object({
    id: sessionId,
    project: projectName.describe("Where its requests act."),
    personId,
    method: z.enum(signInMethods).describe("How the person signed in."),
    browser: z.string().describe("What the browser calls itself; empty where it does not."),
    createdAt: z.iso.datetime(),
    expiresAt: z.iso.datetime(),
    lastUsedAt: z.iso.datetime().nullable(),
  })
  .meta({ id: "Session" });
export type Session = z.infer<typeof session>;

const actionNames = Object.keys(permissionTable) as [Action, ...Action[]];

/** Who sends a request, and what they may do. */
export const self = z
  .object({
    project: projectName,
    name: z.string().describe("Name of the access token, or of the person who is signed in."),
    tokenId: tokenId.nullable().describe("Null where a person is signed in."),
    sessionId: sessionId.nullable().describe("Null for an access token."),
    personId: personId.nullable().describe("Null for a token that no person made."),
    role: role.nullable().describe("The person's in the project; null without, and for a token."),
    projects: z
      .array(z.object({ name: projectName, role }))
      .describe("Projects of the person who is signed in; none for an access token."),
    scopes: z.array(scope),
    actions: z.array(z.enum(actionNames)).describe("What the caller may do."),
    expiresAt: z.iso.datetime().nullable(),
    now: z.iso.datetime().describe("The service's time."),
    lastChange: z
      .int()
      .nonnegative()
      .describe("Number of the last change: events after it are what later answers may lack."),
  })
  .meta({ id: "Self" });
export type Self = z.infer<typeof self>;

import { z } from "zod";
import { personId } from "../id.ts";
import { limits } from "../limits.ts";
import { person } from "./person.ts";
import { role } from "./role.ts";

export const groupPrefix = "group:";

/** The id of a person, or `group:` and the name of a group. */
export const memberName = z
  .union(
    [
      personId,
      z
        .string()
        .startsWith(groupPrefix)
        .min(groupPrefix.length + 1)
        .max(groupPrefix.length + limits.groupLength)
        .regex(/^[^\p{C}]+$/u),
    ],
    {
      error:
        `must be the id of a person, or ${groupPrefix}NAME with 1 to ${limits.groupLength} ` +
        "characters",
    },
  )
  .describe(
    `Id of a person, or \`${groupPrefix}\` and the name of a group of the single sign-on, of at ` +
      `most ${limits.groupLength} characters.`,
  );

export const memberRequest = z.strictObject({ role }).meta({ id: "MemberRequest" });

/** A person or a group with a role in a project. */
export const member = z
  .object({
    member: memberName,
    person: person.nullable().describe("Null for a group."),
    issuer: z.string().nullable().describe("Whose group it is; null for a person."),
    role,
    createdAt: z.iso.datetime(),
  })
  .meta({ id: "Member" });
export type Member = z.infer<typeof member>;

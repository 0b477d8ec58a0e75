import { z } from "zod";
import { personId } from "../id.ts";
import { limits, textLimits } from "../limits.ts";

/** The person whom links of the service and of its command `sign-in` sign in. */
export const administratorId = `person-${"0".repeat(26)}`;

/** Somebody who has signed in. */
export const person = z
  .object({
    id: personId,
    name: z.string().describe("Name to show; several people can have the same."),
    email: z
      .string()
      .nullable()
      .describe("As the single sign-on says; finds the person, decides nothing."),
    issuer: z
      .string()
      .nullable()
      .describe("Single sign-on that the person is known from; null for a sign-in link."),
    subject: z.string().nullable().describe("The issuer's name of the person."),
  })
  .meta({ id: "Person" });
export type Person = z.infer<typeof person>;

/** Query of `GET /people`. */
export const personQuery = z.strictObject({
  email: z
    .string()
    .min(1)
    .max(textLimits.name)
    .describe(
      `The whole address, in capitals or not. At most ${limits.foundPeople} people are found.`,
    ),
});

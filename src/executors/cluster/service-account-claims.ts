import { z } from "zod";
import { callerTokenAudience } from "../../contract/people/permissions.ts";
import { decodeTokenPayload } from "./decode-token-payload.ts";

const serviceAccountClaims = z.object({
  aud: z.array(z.string()).refine((audiences) => audiences.includes(callerTokenAudience)),
  exp: z.number(),
  "kubernetes.io": z.object({
    namespace: z.string(),
    serviceaccount: z.object({ name: z.string(), uid: z.string() }),
  }),
});

interface ServiceAccountClaims {
  readonly namespace: string;
  /** Name of the user that the account is. */
  readonly username: string;
  readonly uid: string;
  /** Milliseconds since 1970. */
  readonly expiresAt: number;
}

/** What a token says of itself, unverified; undefined where it is not for callers. */
export function readServiceAccountClaims(token: string): ServiceAccountClaims | undefined {
  const { success, data } = serviceAccountClaims.safeParse(decodeTokenPayload(token));
  if (!success) return undefined;
  const { namespace, serviceaccount } = data["kubernetes.io"];
  const username = `system:serviceaccount:${namespace}:${serviceaccount.name}`;
  return { namespace, username, uid: serviceaccount.uid, expiresAt: data.exp * 1000 };
}

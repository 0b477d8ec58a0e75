import { z } from "zod";
import { decodeTokenPayload } from "./decode-token-payload.ts";

const podTokenClaims = z.object({
  exp: z.number(),
  "kubernetes.io": z.object({
    namespace: z.string(),
    pod: z.object({ name: z.string(), uid: z.string() }),
  }),
});

interface PodTokenClaims {
  readonly namespace: string;
  readonly podName: string;
  readonly podUid: string;
  /** Milliseconds since 1970. */
  readonly expiresAt: number;
}

/** What a token says of itself, unverified; undefined where it is not that of a pod. */
export function readPodTokenClaims(token: string): PodTokenClaims | undefined {
  const { success, data } = podTokenClaims.safeParse(decodeTokenPayload(token));
  if (!success) return undefined;
  const { namespace, pod } = data["kubernetes.io"];
  const { name: podName, uid: podUid } = pod;
  return { namespace, podName, podUid, expiresAt: data.exp * 1000 };
}

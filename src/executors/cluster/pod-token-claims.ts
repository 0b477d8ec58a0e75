import { z } from "zod";

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
  const [, payload = ""] = token.split(".");
  const { success, data } = podTokenClaims.safeParse(decodePayload(payload));
  if (!success) return undefined;
  const { namespace, pod } = data["kubernetes.io"];
  const { name: podName, uid: podUid } = pod;
  return { namespace, podName, podUid, expiresAt: data.exp * 1000 };
}

function decodePayload(encoded: string): unknown {
  try {
    return JSON.parse(Buffer.from(encoded, "base64url").toString());
  } catch {
    return undefined;
  }
}

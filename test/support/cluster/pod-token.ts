import { Agent, request } from "undici";
import { z } from "zod";
import { workerTokenAudience } from "../../../src/contract/worker-protocol/messages.ts";
import type { Cluster } from "./cluster.ts";

export const workerServiceAccount = "model-optimization-worker";

interface PodIdentity {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

const tokenRequest = z.object({ status: z.object({ token: z.string() }) });

/** Nobody renews it as a kubelet does: it counts by clocks that are hours ahead, too. */
const expirationSeconds = 86_400;

/** A token as the kubelet mounts it into a pod. */
export async function podToken(
  { url, adminToken, certificateAuthority }: Cluster,
  { namespace, name, uid }: PodIdentity,
): Promise<string> {
  const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${workerServiceAccount}/token`;
  const boundObjectRef = { apiVersion: "v1", kind: "Pod", name, uid };
  const dispatcher = new Agent({ connect: { ca: certificateAuthority } });
  try {
    const { statusCode, body } = await request(new URL(path, url), {
      dispatcher,
      method: "POST",
      headers: { authorization: `Bearer ${adminToken}`, "content-type": "application/json" },
      body: JSON.stringify({
        spec: { audiences: [workerTokenAudience], boundObjectRef, expirationSeconds },
      }),
    });
    const answer = await body.json();
    if (statusCode !== 201) throw new Error(`No token for "${name}": ${JSON.stringify(answer)}`);
    return tokenRequest.parse(answer).status.token;
  } finally {
    await dispatcher.close();
  }
}

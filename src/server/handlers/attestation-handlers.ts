import { createHash, createPrivateKey, createPublicKey, type KeyObject, sign } from "node:crypto";
import { requireJob } from "./require-job.ts";
import {
  describeEvaluation,
  describeProvenance,
  type Envelope,
  isAttested,
  preAuthEncoding,
  statementMediaType,
} from "../../contract/jobs/attestation.ts";
import { ServiceError } from "../../contract/errors.ts";
import { isTerminal } from "../../contract/jobs/status.ts";
import type { RouteHandlers } from "../http/bind-routes.ts";
import { notFoundError } from "../http/problem-response.ts";
import type { ServerContext } from "../http/server-context.ts";

/** The name of the installation's key, from which the pair of keys follows. */
const keyName = "attestations";
/** PKCS #8 of an Ed25519 key before its 32 bytes. */
const privateKeyHead = Buffer.from("302e020100300506032b657004220420", "hex");

type AttestationHandlers = Pick<RouteHandlers, "getAttestations" | "getAttestationKey">;

export const attestationHandlers: AttestationHandlers = {
  async getAttestations(context, { caller, params: { id }, request }) {
    const job = await requireJob(context.records, caller, id);
    if (!isTerminal(job.status)) {
      throw new ServiceError("job_unfinished", `Job "${id}" has not ended`);
    }
    if (!isAttested(job)) throw notFoundError("attestation", id, "which has no result");
    const builder = context.publicUrl ?? new URL(request.url).origin;
    const key = await readPrivateKey(context);
    const signed = [describeProvenance(job, builder), describeEvaluation(job)];
    const envelopes = signed.map((statement) => signStatement(statement, key));
    return { status: 200, json: { envelopes } };
  },

  async getAttestationKey(context) {
    const publicKey = createPublicKey(await readPrivateKey(context));
    const pem = publicKey.export({ type: "spki", format: "pem" });
    return { status: 200, json: { keyid: keyId(publicKey), publicKey: pem.toString() } };
  },
};

async function readPrivateKey({ records }: Pick<ServerContext, "records">): Promise<KeyObject> {
  const seed = await records.keys.read(keyName);
  const key = Buffer.concat([privateKeyHead, seed]);
  return createPrivateKey({ key, format: "der", type: "pkcs8" });
}

function signStatement(statement: object, key: KeyObject): Envelope {
  const payload = Buffer.from(JSON.stringify(statement));
  const sig = sign(null, preAuthEncoding(payload), key).toString("base64");
  return {
    payloadType: statementMediaType,
    payload: payload.toString("base64"),
    signatures: [{ keyid: keyId(createPublicKey(key)), sig }],
  };
}

function keyId(publicKey: KeyObject): string {
  const der = publicKey.export({ type: "spki", format: "der" });
  return createHash("sha256").update(der).digest("hex");
}

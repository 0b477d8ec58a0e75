import {
  createECDH,
  createHash,
  createPrivateKey,
  createPublicKey,
  type KeyObject,
  sign,
} from "node:crypto";
import { requireJob } from "./require-job.ts";
import { showJob } from "./show-job.ts";
import {
  type AttestedJob,
  describeEvaluation,
  describeProvenance,
  type Envelope,
  isAttested,
  preAuthEncoding,
  statementMediaType,
} from "../../contract/attestations/attestation.ts";
import { describeModelBom } from "../../contract/attestations/model-bom.ts";
import {
  bundleSignature,
  describeSignedModel,
} from "../../contract/attestations/model-signature.ts";
import { ServiceError } from "../../contract/errors.ts";
import { isTerminal } from "../../contract/jobs/status.ts";
import type { Caller } from "../../auth/authenticate.ts";
import type { RouteHandlers } from "../http/bind-routes.ts";
import { notFoundError } from "../http/problem-response.ts";
import type { ServerContext } from "../http/server-context.ts";

/** Names of the installation's secrets, from which pairs of keys follow. */
const keyNames = { attestations: "attestations", models: "model-signatures" } as const;
/** PKCS #8 of an Ed25519 key before its 32 bytes. */
const privateKeyHead = Buffer.from("302e020100300506032b657004220420", "hex");

type AttestationHandlers = Pick<
  RouteHandlers,
  "getAttestations" | "getModelSignature" | "getModelBom" | "getAttestationKey"
>;

export const attestationHandlers: AttestationHandlers = {
  async getAttestations(context, { caller, params: { id }, request }) {
    const job = await requireAttested(context, caller, id);
    const key = await readAttestationKey(context);
    const builder = builderOf(context, request);
    const signed = [describeProvenance(job, builder), describeEvaluation(job)];
    const keyid = hashText(createPublicKey(key).export({ type: "spki", format: "der" }));
    const envelopes = signed.map((statement) => signStatement(statement, key, keyid));
    return { status: 200, json: { envelopes } };
  },

  async getModelSignature(context, { caller, params: { id } }) {
    const job = await requireAttested(context, caller, id);
    const key = await readModelKey(context);
    const statement = describeSignedModel(job, (bytes) => hashText(Buffer.from(bytes, "hex")));
    const envelope = signStatement(statement, key, "");
    return { status: 200, json: bundleSignature(envelope, hashText(publicPem(key))) };
  },

  async getModelBom(context, { caller, params: { id }, request }) {
    const job = await requireAttested(context, caller, id);
    return { status: 200, json: describeModelBom(job, builderOf(context, request)) };
  },

  async getAttestationKey(context) {
    const key = await readAttestationKey(context);
    const keyid = hashText(createPublicKey(key).export({ type: "spki", format: "der" }));
    const modelKey = publicPem(await readModelKey(context));
    return { status: 200, json: { keyid, publicKey: publicPem(key), modelKey } };
  },
};

async function requireAttested(
  { records }: ServerContext,
  caller: Caller,
  id: string,
): Promise<AttestedJob> {
  const job = showJob(await requireJob(records, caller, id));
  if (!isTerminal(job.status)) {
    throw new ServiceError("job_unfinished", `Job "${id}" has not ended`);
  }
  if (!isAttested(job)) throw notFoundError("attestation", id, "which has no result");
  return job;
}

function builderOf({ publicUrl }: ServerContext, request: Request): string {
  return publicUrl ?? new URL(request.url).origin;
}

async function readAttestationKey({ records }: Pick<ServerContext, "records">): Promise<KeyObject> {
  const seed = await records.keys.read(keyNames.attestations);
  const key = Buffer.concat([privateKeyHead, seed]);
  return createPrivateKey({ key, format: "der", type: "pkcs8" });
}

/** Of the curve P-256, since `model_signing` knows no Ed25519. */
async function readModelKey({ records }: Pick<ServerContext, "records">): Promise<KeyObject> {
  const scalar = Buffer.from(await records.keys.read(keyNames.models));
  // Below the order of the curve.
  scalar.writeUInt8(scalar.readUInt8(0) & 0x7f, 0);
  const pair = createECDH("prime256v1");
  pair.setPrivateKey(scalar);
  const point = pair.getPublicKey();
  const key = {
    kty: "EC",
    crv: "P-256",
    d: scalar.toString("base64url"),
    x: point.toString("base64url", 1, 33),
    y: point.toString("base64url", 33),
  };
  return createPrivateKey({ key, format: "jwk" });
}

function signStatement(statement: object, key: KeyObject, keyid: string): Envelope {
  const payload = Buffer.from(JSON.stringify(statement));
  const hash = key.asymmetricKeyType === "ec" ? "sha256" : null;
  const sig = sign(hash, preAuthEncoding(payload), key).toString("base64");
  return {
    payloadType: statementMediaType,
    payload: payload.toString("base64"),
    signatures: [{ keyid, sig }],
  };
}

function publicPem(key: KeyObject): string {
  return createPublicKey(key).export({ type: "spki", format: "pem" }).toString();
}

function hashText(content: string | Uint8Array): string {
  return createHash("sha256").update(content).digest("hex");
}

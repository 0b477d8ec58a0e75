import { z } from "zod";
import type { Job } from "../jobs/job.ts";

/** What the payload of an envelope is, as in-toto names it. */
export const statementMediaType = "application/vnd.in-toto+json";
const provenanceType = "https://slsa.dev/provenance/v1";
const evaluationType = "https://modeloptimization.dev/evaluation/v1";

const compressionType = "https://modeloptimization.dev/compression/v1";

/** A signed statement: DSSE, as in-toto and sigstore read it. */
export const envelope = z
  .object({
    payloadType: z.literal(statementMediaType),
    payload: z.base64().describe("The statement as JSON, in base64."),
    signatures: z
      .array(z.object({ keyid: z.string(), sig: z.base64().describe("In base64.") }))
      .length(1),
  })
  .meta({ id: "AttestationEnvelope" });
export type Envelope = z.infer<typeof envelope>;

export const attestations = z
  .object({ envelopes: z.array(envelope).describe("The provenance, then the evaluation.") })
  .meta({ id: "Attestations" });

export const attestationKey = z
  .object({
    keyid: z.string().describe("SHA-256 of the public key in the form of DER."),
    publicKey: z.string().describe("Ed25519, in the form of PEM."),
    modelKey: z.string().describe("Of signatures of models: ECDSA on P-256, in the form of PEM."),
  })
  .meta({ id: "AttestationKey" });

const digest = z.strictObject({ sha256: z.string().regex(/^[0-9a-f]{64}$/) });
const subject = z.array(z.strictObject({ name: z.string(), digest })).min(1);
const statementBase = { _type: z.literal("https://in-toto.io/Statement/v1"), subject };

const provenance = z.strictObject({
  ...statementBase,
  predicateType: z.literal(provenanceType),
  predicate: z.strictObject({
    buildDefinition: z.strictObject({
      buildType: z.literal(compressionType),
      externalParameters: z.strictObject({
        kind: z.string(),
        model: z.string(),
        source: z.string(),
        target: z.string(),
        recipe: z.record(z.string(), z.unknown()),
        gates: z.record(z.string(), z.unknown()),
      }),
      resolvedDependencies: z.array(z.strictObject({ name: z.string(), digest })).length(1),
    }),
    runDetails: z.strictObject({
      builder: z.strictObject({ id: z.string() }),
      metadata: z.strictObject({
        invocationId: z.string(),
        startedOn: z.iso.datetime(),
        finishedOn: z.iso.datetime(),
      }),
    }),
  }),
});

const evaluation = z.strictObject({
  ...statementBase,
  predicateType: z.literal(evaluationType),
  predicate: z.strictObject({
    job: z.string(),
    telemetry: z.record(z.string(), z.unknown()),
    gates: z.array(z.record(z.string(), z.unknown())),
    gatesPassed: z.boolean(),
  }),
});

export const statements = { provenance, evaluation } as const;
export type ProvenanceStatement = z.infer<typeof provenance>;
export type EvaluationStatement = z.infer<typeof evaluation>;

/** A completed job, which has all of it. */
export type AttestedJob = Job & {
  readonly startedAt: string;
  readonly finishedAt: string;
  readonly model: Job["model"] & { readonly actualSha256: string };
};

export function isAttested(job: Job): job is AttestedJob {
  const { startedAt, finishedAt, model, artifacts, status } = job;
  const isKnown = startedAt !== null && finishedAt !== null && model.actualSha256 !== null;
  return status === "Completed" && isKnown && artifacts.length > 0;
}

/** What a result was made of: SLSA's provenance. */
export function describeProvenance(job: AttestedJob, builder: string): ProvenanceStatement {
  const { id, kind, model, target, recipe, gateLimits, startedAt, finishedAt } = job;
  const { name, source, actualSha256 } = model;
  return {
    ...describeSubject(job),
    predicateType: provenanceType,
    predicate: {
      buildDefinition: {
        buildType: compressionType,
        externalParameters: { kind, model: name, source, target, recipe, gates: gateLimits },
        resolvedDependencies: [{ name, digest: { sha256: actualSha256 } }],
      },
      runDetails: {
        builder: { id: builder },
        metadata: { invocationId: id, startedOn: startedAt, finishedOn: finishedAt },
      },
    },
  };
}

/** What was measured of a result, and on which machine, and what its gates said. */
export function describeEvaluation(job: AttestedJob): EvaluationStatement {
  const { id, telemetry, gates } = job;
  const gatesPassed = gates.every(({ passed, level }) => passed || level === "warn");
  return {
    ...describeSubject(job),
    predicateType: evaluationType,
    predicate: { job: id, telemetry, gates, gatesPassed },
  };
}

function describeSubject({ artifacts }: AttestedJob) {
  return {
    _type: "https://in-toto.io/Statement/v1" as const,
    subject: artifacts.map(({ name, sha256 }) => ({ name, digest: { sha256 } })),
  };
}

/** The bytes that an envelope's signature is of: DSSE's encoding of the type and the payload. */
export function preAuthEncoding(payload: Uint8Array): Uint8Array {
  const encoder = new TextEncoder();
  const type = encoder.encode(statementMediaType);
  const head = encoder.encode(`DSSEv1 ${type.length} ${statementMediaType} ${payload.length} `);
  const bytes = new Uint8Array(head.length + payload.length);
  bytes.set(head);
  bytes.set(payload, head.length);
  return bytes;
}

import { createHash, createPublicKey, type KeyObject, verify } from "node:crypto";
import type { z } from "zod";
import {
  attestations,
  type Envelope,
  type EvaluationStatement,
  preAuthEncoding,
  type ProvenanceStatement,
  statements,
} from "../src/contract/attestations/attestation.ts";
import type { JobReport } from "./job-report.ts";
import { formatProblems } from "../src/contract/format-problem.ts";
import { parseInput } from "../src/contract/parse-input.ts";
import { errorMessage } from "../src/log/error-message.ts";

/** What is wrong with a result or what is said of it. */
export class VerificationError extends Error {
  override readonly name = "VerificationError";
}

interface Evidence {
  /** The answer of `GET /jobs/{id}/attestations`. */
  readonly attestations: string;
  /** The installation's public key, in the form of PEM. */
  readonly publicKey: string;
  readonly report: JobReport;
  /** SHA-256 of the files that are there, by their names. */
  readonly files: ReadonlyMap<string, string>;
  readonly now: Date;
}

/** Clocks of machines differ by a few minutes. */
const clockToleranceMs = 5 * 60_000;

/**
 * Verifies what an installation signed of a result: the signatures, the bytes of the files, and
 * that report and statements are of the same job. Gives both statements.
 * @throws VerificationError
 */
export function verifyAttestations({
  attestations: text,
  publicKey,
  report,
  files,
  now,
}: Evidence) {
  const { envelopes } = parse(attestations, text, "The attestations");
  const [first, second, ...others] = envelopes;
  if (!first || !second || others.length > 0) {
    throw new VerificationError(`There are ${envelopes.length} attestations, and have to be 2`);
  }
  const provenance = openEnvelope(first, publicKey, statements.provenance);
  const evaluation = openEnvelope(second, publicKey, statements.evaluation);
  if (JSON.stringify(provenance.subject) !== JSON.stringify(evaluation.subject)) {
    throw new VerificationError("Provenance and evaluation are of different files");
  }
  verifyFiles(provenance, files);
  verifyReport(provenance, evaluation, report);
  verifyTimes(provenance, now);
  return { provenance, evaluation };
}

/** The statement of an envelope whose signature is the key's. */
function openEnvelope<Schema extends z.ZodType>(
  { payload, signatures: [signature] }: Envelope,
  publicKey: string,
  schema: Schema,
): z.output<Schema> {
  const bytes = Buffer.from(payload, "base64");
  const key = readPublicKey(publicKey);
  const keyid = createHash("sha256")
    .update(key.export({ type: "spki", format: "der" }))
    .digest("hex");
  if (signature?.keyid !== keyid) {
    throw new VerificationError(`It is signed by the key ${signature?.keyid}, not by ${keyid}`);
  }
  if (!verify(null, preAuthEncoding(bytes), key, Buffer.from(signature.sig, "base64"))) {
    throw new VerificationError("The signature is not one of the attestation");
  }
  return parse(schema, bytes.toString("utf8"), "The statement");
}

function readPublicKey(pem: string): KeyObject {
  try {
    return createPublicKey(pem);
  } catch (cause) {
    throw new VerificationError("The key is no public key in the form of PEM", { cause });
  }
}

/** @throws VerificationError for a text that is not JSON, or not of the schema */
export function parse<Schema extends z.ZodType>(
  schema: Schema,
  text: string,
  what: string,
): z.output<Schema> {
  try {
    const { data, problems = [] } = parseInput(schema, JSON.parse(text));
    if (data !== undefined) return data;
    throw new TypeError(formatProblems(problems.slice(0, 1)));
  } catch (cause) {
    throw new VerificationError(`${what} cannot be read: ${errorMessage(cause)}`, { cause });
  }
}

function verifyFiles({ subject }: ProvenanceStatement, files: ReadonlyMap<string, string>): void {
  const named = new Map(subject.map(({ name, digest }) => [name, digest.sha256]));
  for (const [name, sha256] of named) {
    const found = files.get(name);
    if (found === undefined) throw new VerificationError(`The file "${name}" is missing`);
    if (found === sha256) continue;
    throw new VerificationError(`"${name}" has the SHA-256 ${found}, and was made with ${sha256}`);
  }
  const unknown = [...files.keys()].find((name) => !named.has(name));
  if (unknown !== undefined) {
    throw new VerificationError(`The file "${unknown}" is not one of the result's`);
  }
}

function verifyReport(
  { predicate: { buildDefinition, runDetails } }: ProvenanceStatement,
  { predicate: evaluated }: EvaluationStatement,
  report: JobReport,
): void {
  const { externalParameters, resolvedDependencies } = buildDefinition;
  const facts = [
    ["job", report.job, runDetails.metadata.invocationId],
    ["job", report.job, evaluated.job],
    ["original's SHA-256", report.model.sha256, resolvedDependencies[0]?.digest.sha256],
    ["recipe", JSON.stringify(report.recipe), JSON.stringify(externalParameters.recipe)],
    ["target", report.target.name, externalParameters.target],
  ] as const;
  for (const [what, reported, attested] of facts) {
    if (reported === attested) continue;
    throw new VerificationError(`The report's ${what} is ${reported}, the attested ${attested}`);
  }
}

function verifyTimes({ predicate }: ProvenanceStatement, now: Date): void {
  const { startedOn, finishedOn } = predicate.runDetails.metadata;
  const [started, finished] = [Date.parse(startedOn), Date.parse(finishedOn)];
  if (finished < started) throw new VerificationError("The job ended before it began");
  if (finished > now.getTime() + clockToleranceMs) {
    throw new VerificationError(`The job ended at ${finishedOn}, which is still to come`);
  }
}

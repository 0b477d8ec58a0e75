import assert from "node:assert/strict";
import { createHash, generateKeyPairSync, sign } from "node:crypto";
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import test, { type TestContext } from "node:test";
import { promisify } from "node:util";
import { type JobReport, jobReport } from "../../scripts/job-report.ts";
import { repeatJob } from "../../scripts/repeat-job.ts";
import { verifyAttestations } from "../../scripts/verify-attestations.ts";
import {
  attestationKey,
  attestations,
  type Envelope,
  preAuthEncoding,
} from "../../src/contract/attestations/attestation.ts";
import { pythonInterpreter, pythonMissing, runPython } from "../support/python.ts";
import { startRunningService } from "../support/running-service.ts";
import { floatInitializer, node, tensorInfo, writeTinyModel } from "../support/tiny-model.ts";

const size = 128;

async function writeModel(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "attested-"));
  t.after(() => rm(folder, { recursive: true }));
  const file = join(folder, "model.onnx");
  const weight = (seed: number) => (i: number) => Math.sin(i * 12.9898 + seed);
  await writeTinyModel(file, {
    input: [tensorInfo("x", [1, size])],
    output: [tensorInfo("y", [1, size])],
    initializer: [
      floatInitializer("w1", [size, size], weight(1)),
      floatInitializer("w2", [size, size], weight(2)),
    ],
    node: [node("MatMul", ["x", "w1"], ["a"]), node("MatMul", ["a", "w2"], ["y"])],
  });
  return file;
}

const target = "cpu-int8";

/** A completed job with all that its caller has of it. */
async function runAttestedJob(t: TestContext) {
  const { client, baseUrl, token } = await startRunningService(t);
  const modelPath = await writeModel(t);
  const { source } = await client.uploadModel(modelPath);
  const { id } = await client.call("startCompression", {
    body: {
      model: { source },
      target,
      recipe: { evaluation: { samples: 1, latencyBudgetSeconds: 0.1 } },
      gates: { maxSizeRatio: 0.9 },
    },
  });
  const headers = { authorization: `Bearer ${token}` };
  const read = async (address: string) => {
    const answer = await fetch(`${baseUrl}${address}`, { headers });
    assert.equal(answer.status, 200, address);
    return Buffer.from(await answer.arrayBuffer());
  };
  const job = await client.call("getJob", { params: { id }, headers: { prefer: "wait=60" } });
  assert.equal(job.status, "Completed", job.error?.message);
  const files = new Map<string, Buffer>();
  for (const { name } of job.artifacts) {
    files.set(name, await read(`/jobs/${id}/artifacts/${name}`));
  }
  const signed = (await read(`/jobs/${id}/attestations`)).toString();
  const keys = attestationKey.parse(JSON.parse(String(await read("/attestation-key"))));
  const modelSignature = await read(`/jobs/${id}/model-signature`);
  const modelBom = (await read(`/jobs/${id}/model-bom`)).toString();
  const again = (await read(`/jobs/${id}/attestations`)).toString();
  assert.equal(again, signed);
  const text = files.get("report.json")?.toString() ?? "";
  const report = jobReport.parse(JSON.parse(text));
  return { modelPath, files, signed, ...keys, modelSignature, modelBom, report };
}

type Attested = Awaited<ReturnType<typeof runAttestedJob>>;

interface Evidence {
  signed: string;
  publicKey: string;
  report: JobReport;
  files: Map<string, Buffer>;
  now: Date;
}

function verify({ signed, publicKey, report, files, now }: Evidence) {
  const hashes = [...files].map(
    ([name, bytes]) => [name, createHash("sha256").update(bytes).digest("hex")] as const,
  );
  const evidence = { attestations: signed, publicKey, report, files: new Map(hashes), now };
  return verifyAttestations(evidence);
}

/** The attestations with one envelope changed. */
function withEnvelope(signed: string, index: number, change: (envelope: Envelope) => unknown) {
  const { envelopes } = attestations.parse(JSON.parse(signed));
  const changed = envelopes.map((envelope, i) => (i === index ? change(envelope) : envelope));
  return JSON.stringify({ envelopes: changed });
}

/** The attestations with a text of a statement replaced; the signature stays. */
function withText(signed: string, index: number, [from, to]: readonly [string | RegExp, string]) {
  return withEnvelope(signed, index, (envelope) => {
    const text = Buffer.from(envelope.payload, "base64").toString();
    const changed = text.replace(from, to);
    assert.notEqual(changed, text);
    return { ...envelope, payload: Buffer.from(changed).toString("base64") };
  });
}

const strangers = generateKeyPairSync("ed25519");
const strangersKey = strangers.publicKey.export({ type: "spki", format: "pem" }).toString();

/** Signed anew by a key that is not the installation's. */
function signAgain(envelope: Envelope, keepsId: boolean): Envelope {
  const payload = Buffer.from(envelope.payload, "base64");
  const sig = sign(null, preAuthEncoding(payload), strangers.privateKey).toString("base64");
  const der = strangers.publicKey.export({ type: "spki", format: "der" });
  const keyid = createHash("sha256").update(der).digest("hex");
  const [own] = envelope.signatures;
  return { ...envelope, signatures: [{ keyid: keepsId && own ? own.keyid : keyid, sig }] };
}

function flip(bytes: Buffer): Buffer {
  const changed = Buffer.from(bytes);
  changed[changed.length >> 1] = (changed[changed.length >> 1] ?? 0) ^ 1;
  return changed;
}

const tamperings: readonly [what: string, tamper: (evidence: Evidence) => void, says: RegExp][] = [
  [
    "a bit of the model",
    (e) => e.files.set("model.onnx", flip(e.files.get("model.onnx") ?? Buffer.alloc(1))),
    /"model.onnx" has the SHA-256/,
  ],
  [
    "a bit of the report",
    (e) => e.files.set("report.json", flip(e.files.get("report.json") ?? Buffer.alloc(1))),
    /"report.json" has the SHA-256/,
  ],
  ["a missing file", (e) => e.files.delete("graph.json"), /"graph.json" is missing/],
  [
    "an added file",
    (e) => e.files.set("weights.bin", Buffer.from("more")),
    /"weights.bin" is not one/,
  ],
  [
    "a renamed file",
    (e) => e.files.set("other.onnx", e.files.get("model.onnx") ?? Buffer.alloc(0)),
    /"other.onnx" is not one/,
  ],
  [
    "an empty model",
    (e) => e.files.set("model.onnx", Buffer.alloc(0)),
    /"model.onnx" has the SHA-256/,
  ],
  [
    "another original in the provenance",
    (e) =>
      (e.signed = withText(e.signed, 0, [
        /("resolvedDependencies":\[\{"name":"[^"]*","digest":\{"sha256":")\w{4}/,
        "$10000",
      ])),
    /not one of the attestation/,
  ],
  [
    "another recipe in the provenance",
    (e) => (e.signed = withText(e.signed, 0, ["int8-dynamic", "int4-weight"])),
    /not one of the attestation/,
  ],
  [
    "another builder",
    (e) =>
      (e.signed = withText(e.signed, 0, [
        /"builder":\{"id":"[^"]*"/,
        '"builder":{"id":"https://evil.example"',
      ])),
    /not one of the attestation/,
  ],
  [
    "a better figure in the evaluation",
    (e) => (e.signed = withText(e.signed, 1, [/"ratio":0\.\d+/, '"ratio":0.1'])),
    /not one of the attestation/,
  ],
  [
    "gates that passed",
    (e) => (e.signed = withText(e.signed, 1, ['"gatesPassed":true', '"gatesPassed":"yes"'])),
    /not one of the attestation/,
  ],
  [
    "a bit of a signature",
    (e) =>
      (e.signed = withEnvelope(e.signed, 0, (envelope) => ({
        ...envelope,
        signatures: envelope.signatures.map((each) => ({
          ...each,
          sig: flip(Buffer.from(each.sig, "base64")).toString("base64"),
        })),
      }))),
    /not one of the attestation/,
  ],
  [
    "a signature of the other statement",
    (e) =>
      (e.signed = withEnvelope(e.signed, 0, (envelope) => ({
        ...envelope,
        signatures: attestations.parse(JSON.parse(e.signed)).envelopes[1]?.signatures,
      }))),
    /not one of the attestation/,
  ],
  [
    "no signature",
    (e) => (e.signed = withEnvelope(e.signed, 0, (envelope) => ({ ...envelope, signatures: [] }))),
    /cannot be read/,
  ],
  [
    "a signature by another key",
    (e) => (e.signed = withEnvelope(e.signed, 0, (envelope) => signAgain(envelope, false))),
    /signed by the key/,
  ],
  [
    "a signature by another key under the same id",
    (e) => (e.signed = withEnvelope(e.signed, 1, (envelope) => signAgain(envelope, true))),
    /not one of the attestation/,
  ],
  ["another public key", (e) => (e.publicKey = strangersKey), /signed by the key/],
  [
    "another type of payload",
    (e) =>
      (e.signed = withEnvelope(e.signed, 0, (envelope) => ({
        ...envelope,
        payloadType: "text/plain",
      }))),
    /cannot be read/,
  ],
  [
    "only one statement",
    (e) =>
      (e.signed = JSON.stringify({
        envelopes: attestations.parse(JSON.parse(e.signed)).envelopes.slice(0, 1),
      })),
    /There are 1 attestations/,
  ],
  [
    "statements in the wrong order",
    (e) =>
      (e.signed = JSON.stringify({
        envelopes: attestations.parse(JSON.parse(e.signed)).envelopes.toReversed(),
      })),
    /cannot be read/,
  ],
  [
    "the report of another job",
    (e) => (e.report = { ...e.report, job: `job-${"0".repeat(26)}` }),
    /report's job is/,
  ],
  [
    "a report of another original",
    (e) => (e.report = { ...e.report, model: { ...e.report.model, sha256: "0".repeat(64) } }),
    /report's original's SHA-256 is/,
  ],
  [
    "a report with another recipe",
    (e) => (e.report = { ...e.report, recipe: { ...e.report.recipe, minElements: 7 } }),
    /report's recipe is/,
  ],
  ["a clock that is wrong", (e) => (e.now = new Date(0)), /still to come/],
];

test("a result is what its installation signed, and nothing else is taken for it", async (t) => {
  const attested: Attested = await runAttestedJob(t);
  const fresh = (): Evidence => ({ ...attested, files: new Map(attested.files), now: new Date() });
  const { provenance, evaluation } = verify(fresh());
  assert.equal(provenance.subject.length, attested.files.size);
  assert.equal(evaluation.predicate.gatesPassed, true);
  for (const [what, tamper, says] of tamperings) {
    await t.test(`${what} is refused`, () => {
      const evidence = fresh();
      tamper(evidence);
      assert.throws(() => verify(evidence), { name: "VerificationError", message: says });
    });
  }
  await t.test("the job is repeated from its report, to the same bytes and figures", async () => {
    await repeatJob(attested.report, attested.modelPath);
  });
  await t.test("another original, other bytes and other figures are refused", async () => {
    const { report, modelPath } = attested;
    const other = join(modelPath, "../other.onnx");
    await writeFile(other, flip(await readFile(modelPath)));
    await assert.rejects(repeatJob(report, other), /The model has the SHA-256/);
    const files = report.files.map((file) => ({ ...file, sha256: "0".repeat(64) }));
    await assert.rejects(repeatJob({ ...report, files }, modelPath), /Repeated, "model.onnx" has/);
    const weights = report.weights.map((weight) => ({ ...weight, form: "another" }));
    await assert.rejects(repeatJob({ ...report, weights }, modelPath), /has the form/);
  });
});

const exec = promisify(execFile);

/** What `model_signing` says of a folder with the files and the signature. */
async function verifyByOpenSsf(
  t: TestContext,
  { files, modelSignature, modelKey }: Pick<Attested, "files" | "modelSignature" | "modelKey">,
): Promise<{ readonly passed: boolean; readonly output: string }> {
  const folder = await mkdtemp(join(tmpdir(), "signed-"));
  t.after(() => rm(folder, { recursive: true }));
  const key = join(await mkdtemp(join(tmpdir(), "key-")), "key.pem");
  t.after(() => rm(dirname(key), { recursive: true }));
  await writeFile(key, modelKey);
  const signature = join(folder, "model.sig");
  await writeFile(signature, modelSignature);
  for (const [name, bytes] of files) await writeFile(join(folder, name), bytes);
  const program = join(dirname(pythonInterpreter), "model_signing");
  const args = ["verify", "key", folder, "--signature", signature, "--public_key", key];
  try {
    const { stdout, stderr } = await exec(program, args);
    return { passed: true, output: stdout + stderr };
  } catch (error) {
    return { passed: false, output: String(error) };
  }
}

/** The schema is CycloneDX's own, which its Python library has. */
const validateBom = `
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
print(JsonStrictValidator(SchemaVersion.V1_6).validate_str(sys.argv[1]))
`;

test(
  "other tools take the signature and the bill of materials",
  { skip: pythonMissing },
  async (t) => {
    const attested = await runAttestedJob(t);
    await t.test("the OpenSSF's model_signing accepts a result", async (t) => {
      const { passed, output } = await verifyByOpenSsf(t, attested);
      assert.ok(passed, output);
      assert.match(output, /Verification succeeded/);
    });
    await t.test("it refuses a changed file, an added one and another key", async (t) => {
      const model = attested.files.get("model.onnx") ?? Buffer.alloc(1);
      const changed = new Map(attested.files).set("model.onnx", flip(model));
      const added = new Map(attested.files).set("other.bin", Buffer.from("more"));
      const { publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
      const modelKey = publicKey.export({ type: "spki", format: "pem" }).toString();
      const refused = [
        [{ ...attested, files: changed }, /Hash mismatch for 'model\.onnx'/],
        [{ ...attested, files: added }, /Extra files found in model/],
        [{ ...attested, modelKey }, /Key mismatch/],
      ] as const;
      for (const [evidence, says] of refused) {
        const { passed, output } = await verifyByOpenSsf(t, evidence);
        assert.equal(passed, false);
        assert.match(output, says);
      }
    });
    await t.test("CycloneDX's schema accepts the bill, and it names the original", async () => {
      assert.equal((await runPython(validateBom, [attested.modelBom])).trim(), "None");
      const bom: unknown = JSON.parse(attested.modelBom);
      assert.partialDeepStrictEqual(bom, {
        metadata: {
          component: {
            type: "machine-learning-model",
            pedigree: {
              ancestors: [{ hashes: [{ alg: "SHA-256", content: attested.report.model.sha256 }] }],
            },
          },
        },
      });
      assert.match(attested.modelBom, /gate\.maxSizeRatio","value":"passed: has \d+(\.\d)? % of/);
    });
  },
);

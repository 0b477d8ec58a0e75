import { readdir, readFile } from "node:fs/promises";
import path from "node:path";
import { parseArgs } from "node:util";
import { jobReport } from "./job-report.ts";
import { hashFile, repeatJob } from "./repeat-job.ts";
import { verifyAttestations, VerificationError } from "./verify-attestations.ts";

const usage = `Usage: npm run verify -- REPORT [--model FILE [--calibration FILE]] [--attestations FILE --key FILE]

REPORT is report.json of a job, beside all files of its result.
--model         repeats the job from the original and compares bytes and figures
--calibration   the .npz file of the recipe's calibration, where it has one
--attestations  verifies the answer of GET /jobs/ID/attestations, and the files
--key           publicKey of GET /attestation-key, in a file
`;

interface Work {
  readonly reportPath: string;
  readonly model: string | undefined;
  readonly calibration: string | undefined;
  readonly signed: { readonly attestations: string; readonly key: string } | undefined;
}

/** What the command line asks for; undefined where that is nothing. */
function readCommandLine(): Work | undefined {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      model: { type: "string" },
      calibration: { type: "string" },
      attestations: { type: "string" },
      key: { type: "string" },
    },
  });
  const [reportPath] = positionals;
  const { model, calibration, attestations, key } = values;
  const signed =
    attestations === undefined || key === undefined ? undefined : { attestations, key };
  if (reportPath === undefined || (model === undefined && signed === undefined)) return undefined;
  return { reportPath, model, calibration, signed };
}

/** @throws VerificationError */
async function verifyResult({ reportPath, model, calibration, signed }: Work): Promise<void> {
  const report = jobReport.parse(JSON.parse(await readFile(reportPath, "utf8")));
  if (signed !== undefined) {
    const { provenance } = verifyAttestations({
      attestations: await readFile(signed.attestations, "utf8"),
      publicKey: await readFile(signed.key, "utf8"),
      report,
      files: await hashFolder(path.dirname(reportPath)),
      now: new Date(),
    });
    const { builder } = provenance.predicate.runDetails;
    const count = provenance.subject.length;
    process.stdout.write(`Signed by ${builder.id}: ${count} files are as they were made\n`);
  }
  if (model !== undefined) {
    await repeatJob(report, model, calibration);
    process.stdout.write(`Repeated: the same ${report.files.length} files and figures\n`);
  }
}

async function hashFolder(folder: string): Promise<Map<string, string>> {
  const hashes = new Map<string, string>();
  for (const name of await readdir(folder)) {
    hashes.set(name, await hashFile(path.join(folder, name)));
  }
  return hashes;
}

const work = readCommandLine();
if (work === undefined) {
  process.stderr.write(usage);
  process.exitCode = 2;
} else {
  try {
    await verifyResult(work);
  } catch (error) {
    if (!(error instanceof VerificationError)) throw error;
    process.stderr.write(`Refused: ${error.message}\n`);
    process.exitCode = 1;
  }
}

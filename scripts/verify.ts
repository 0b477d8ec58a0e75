import { readdir, readFile } from "node:fs/promises";
import path from "node:path";
import { parseArgs } from "node:util";
import { jobReport } from "./job-report.ts";
import { hashFile, repeatJob } from "./repeat-job.ts";
import { parse, verifyAttestations, VerificationError } from "./verify-attestations.ts";
import { errorMessage } from "../src/log/error-message.ts";
import { formatCount } from "../src/contract/text/format-count.ts";

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

/** What the command line asks for, or what is wrong with it. */
function readCommandLine(): Work | { readonly problem: string } | "help" {
  const options = {
    model: { type: "string" },
    calibration: { type: "string" },
    attestations: { type: "string" },
    key: { type: "string" },
    help: { type: "boolean", short: "h" },
  } as const;
  let parsed;
  try {
    parsed = parseArgs({ allowPositionals: true, options });
  } catch (error) {
    return { problem: errorMessage(error) };
  }
  const { help, model, calibration, attestations, key } = parsed.values;
  if (help === true) return "help";
  const [reportPath] = parsed.positionals;
  if (reportPath === undefined) return { problem: "REPORT is missing" };
  if ((attestations === undefined) !== (key === undefined)) {
    return { problem: "--attestations and --key need each other" };
  }
  const signed =
    attestations === undefined || key === undefined ? undefined : { attestations, key };
  if (model === undefined && signed === undefined) {
    return { problem: "There is nothing to verify: give --model, or --attestations and --key" };
  }
  return { reportPath, model, calibration, signed };
}

/** @throws VerificationError */
async function verifyResult({ reportPath, model, calibration, signed }: Work): Promise<void> {
  const report = parse(jobReport, await readFile(reportPath, "utf8"), "The report");
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
    const files = formatCount(report.files.length, "file");
    process.stdout.write(`Repeated: the same ${files} and figures\n`);
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
if (work === "help") {
  process.stdout.write(usage);
} else if ("problem" in work) {
  process.stderr.write(`${work.problem}\n${usage}`);
  process.exitCode = 2;
} else {
  try {
    await verifyResult(work);
  } catch (error) {
    const verdict = error instanceof VerificationError ? "Refused" : "Not verified";
    process.stderr.write(`${verdict}: ${errorMessage(error)}\n`);
    process.exitCode = 1;
  }
}

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { demoModels } from "../src/demo/demo-models.ts";
import { hasFailedGate } from "../src/contract/jobs/gate.ts";
import type { Job } from "../src/contract/jobs/job.ts";
import { batchAddress } from "../src/contract/page-addresses.ts";
import { conclude } from "../src/report/conclude.ts";
import { reportDocument } from "../src/report/report-document.ts";
import { jobLinks, type ReportRow } from "../src/report/report.ts";
import { startRunningService } from "../test/support/running-service.ts";
import { runBatch } from "./run-batch.ts";

// What `exampleReports()` renders: a pull request whose recipe is coarser than the main branch's.

const folder = join(import.meta.dirname, "../docs/examples");
const publicUrl = "https://mos.example.com";
const branch = "main";
const commits = {
  main: "5a1b7e0".padEnd(40, "1"),
  pullRequest: "c81f02e".padEnd(40, "3"),
};

await using cleanup = new AsyncDisposableStack();
const { client } = await startRunningService({
  after: (work: () => unknown) => cleanup.defer(async () => void (await work())),
});
const models: { name: string; source: string }[] = [];
for (const { name, file } of demoModels.slice(1).toReversed()) {
  models.push({ name, source: (await client.uploadModel(file)).source });
}
const common = {
  name: "Model compression",
  models,
  targets: ["cpu", "cpu-int8"],
  gates: { maxSizeRatio: 0.7, minCosine: 0.95, maxSizeRegression: 0.05, maxSqnrDropDb: 3 },
  suite: "acme/models",
};
const evaluation = { latencyBudgetSeconds: 20 };
await runBatch(client, {
  ...common,
  recipe: { evaluation },
  revision: { sha: commits.main, branch, recordBaseline: true },
});
const { id, jobs } = await runBatch(client, {
  ...common,
  recipe: { evaluation, granularity: "tensor" },
  revision: { sha: commits.pullRequest, branch: "coarser-scales", base: { branch } },
});
const report = { name: common.name, url: `${publicUrl}${batchAddress(id)}`, rows: jobs.map(toRow) };
const document = reportDocument(report, conclude(report, "gates"));
await writeFile(join(folder, "report.json"), `${JSON.stringify(document, null, 2)}\n`);
await writeFile(join(folder, "output.txt"), await readOutput(jobs[0]?.id ?? ""));

function toRow(job: Job): ReportRow {
  return {
    id: job.id,
    model: job.model.name,
    target: job.target,
    status: job.status,
    gatesFailed: hasFailedGate(job.gates),
    ...jobLinks(publicUrl, job.id),
    job,
  };
}

async function readOutput(jobId: string): Promise<string> {
  const lines: string[] = [];
  for await (const { text } of client.followLogs(jobId)) lines.push(text);
  return `${lines.join("\n")}\n`;
}

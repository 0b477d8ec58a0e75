import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { hasFailedGate } from "../src/contract/jobs/gate.ts";
import { job as jobSchema } from "../src/contract/jobs/job.ts";
import { jobCheckRun } from "../src/github/check-run-requests.ts";
import { conclude } from "../src/report/conclude.ts";
import { renderBatchCheck, renderComment, renderJobSummary } from "../src/report/render-batch.ts";
import type { CheckOutput, Report } from "../src/report/report.ts";

const folder = "docs/examples";

const reportFile = z.object({
  name: z.string(),
  url: z.string(),
  jobs: z.array(
    z.object({ url: z.string(), changesUrl: z.string(), logUrl: z.string(), ...jobSchema.shape }),
  ),
});

/** Reports of a pull request that was run once: what it left as JSON, rendered as GitHub would show it. */
export async function exampleReports(root: string): Promise<[string, string][]> {
  const { name, url, jobs } = reportFile.parse(
    JSON.parse(await readFile(join(root, folder, "report.json"), "utf8")),
  );
  const output = await readFile(join(root, folder, "output.txt"), "utf8");
  const rows = jobs.map(({ url: page, changesUrl, logUrl, ...job }) => {
    const { id, model, target, status } = job;
    return {
      id,
      model: model.name,
      target,
      status,
      gatesFailed: hasFailedGate(job.gates),
      url: page,
      changesUrl,
      logUrl,
      job,
    };
  });
  const report: Report = { name, url, rows };
  const marked = { marker: "<!-- model-optimization -->", sha: "c0ffee254729" };
  const failOn = "gates";
  const verdict = conclude(report, failOn);
  const jobChecks = rows
    .slice(0, 1)
    .map((row) => jobCheckRun(row, output.trimEnd().split("\n"), { checkName: name, failOn }))
    .map(({ content }) => content.output);
  return [
    [`${folder}/job-summary.md`, `${renderJobSummary(report, verdict)}\n`],
    [`${folder}/check-run.md`, checkPage(renderBatchCheck(report, verdict))],
    [`${folder}/comment.md`, `${renderComment(report, verdict, marked)}\n`],
    ...jobChecks.map((check): [string, string] => [`${folder}/job-check-run.md`, checkPage(check)]),
  ];
}

/** A check run's parts, one below the other as on its page. */
function checkPage({ title, summary, text }: CheckOutput): string {
  return `# ${title}\n\n${summary}\n\n${text}\n`;
}

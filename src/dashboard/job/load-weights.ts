import { z } from "zod";
import { artifactAddress } from "../shared/addresses.ts";
import type { JobDetail } from "./shown-job.ts";

/** What the page reads of a job's report; reports of other versions may have other fields. */
const report = z.object({
  weights: z.array(
    z.object({
      name: z.string(),
      shape: z.array(z.number()),
      originalBytes: z.number(),
      resultBytes: z.number(),
      usedBy: z.array(z.string()),
      form: z.string().nullable(),
      reason: z.string().nullable(),
      error: z.object({ sqnrDb: z.number() }).nullable(),
    }),
  ),
});
export type ReportedWeight = z.infer<typeof report>["weights"][number];

/** The weights of a job's report, the worst first and those that did not change last. */
export async function loadWeights({ id, artifacts }: JobDetail): Promise<ReportedWeight[]> {
  const file = artifacts.find(({ kind }) => kind === "report");
  if (file === undefined) return [];
  const answer = await fetch(artifactAddress(id, file.name));
  if (!answer.ok) throw new Error(`The report cannot be read: status ${answer.status}`);
  const { weights } = report.parse(await answer.json());
  return weights.toSorted(
    (a, b) => errorRank(a) - errorRank(b) || b.originalBytes - a.originalBytes,
  );
}

function errorRank({ error }: ReportedWeight): number {
  return error?.sqnrDb ?? Number.MAX_VALUE;
}

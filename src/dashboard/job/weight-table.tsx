import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { z } from "zod";
import type { JobDetail } from "../../contract/jobs/job.ts";
import { formatBytes } from "../../contract/text/format-bytes.ts";
import { useLive } from "../live/use-live.ts";
import { artifactAddress } from "../shared/addresses.ts";
import { Button } from "../shared/button.tsx";
import { sqnrThresholdsDb } from "../shared/figures.ts";
import { TableHead } from "../shared/table-head.tsx";

const shownAtFirst = 12;

/** The weights of a job, the worst first: what was done to each, and why. */
export function WeightTable({ job }: { readonly job: JobDetail }) {
  const { value: weights = [] } = useLive(() => loadWeights(job), { of: [job.artifacts.length] });
  const isWhole = useSignal(false);
  if (weights.length === 0) return undefined;
  const shown = isWhole.value ? weights : weights.slice(0, shownAtFirst);
  return (
    <section class="card c7">
      <WeightsHead weights={weights}>
        {!isWhole.value && shown.length < weights.length && (
          <Button look="quiet" onClick={() => (isWhole.value = true)}>
            Show all weights
          </Button>
        )}
      </WeightsHead>
      <WeightRows weights={shown} />
    </section>
  );
}

interface WeightsHeadProps {
  readonly weights: readonly ReportedWeight[];
  readonly children: ComponentChildren;
}

function WeightsHead({ weights, children }: WeightsHeadProps) {
  const changed = weights.filter(({ form }) => form !== null).length;
  return (
    <header>
      <h2>Weights</h2>
      <span class="dim">
        {changed} of {weights.length} changed, worst first
      </span>
      <span class="grow" />
      {children}
    </header>
  );
}

const columns = {
  Weight: "",
  "Change and reason": "",
  Original: "num phone-off",
  SQNR: "num",
};

function WeightRows({ weights }: { readonly weights: readonly ReportedWeight[] }) {
  return (
    <table class="weights">
      <caption class="sr">Weights, worst first</caption>
      <TableHead columns={columns} />
      <tbody>
        {weights.map((weight) => (
          <WeightRow key={weight.name} weight={weight} />
        ))}
      </tbody>
    </table>
  );
}

function WeightRow({ weight }: { readonly weight: ReportedWeight }) {
  const { name, shape, usedBy, form, reason, originalBytes, error } = weight;
  return (
    <tr>
      <td class="two cut" title={name}>
        <span class="mono">{name}</span>
        <small>
          {usedBy.join(", ")} {shape.join("×")}
        </small>
      </td>
      <td class="two cut" title={[form, reason].filter((each) => each !== null).join(": ")}>
        {form ?? "unchanged"}
        <small>{reason}</small>
      </td>
      <td class="num phone-off">{formatBytes(originalBytes)}</td>
      <td class="num">{error ? <Sqnr sqnrDb={error.sqnrDb} /> : <span class="dim">exact</span>}</td>
    </tr>
  );
}

const wholeDb = 60;

function Sqnr({ sqnrDb }: { readonly sqnrDb: number }) {
  const tone =
    sqnrDb < sqnrThresholdsDb.bad ? "bad" : sqnrDb < sqnrThresholdsDb.warn ? "warn" : "wait";
  const percent = Math.min(100, Math.max(0, (100 * sqnrDb) / wholeDb));
  return (
    <span class="sqnr">
      {sqnrDb.toFixed(1)} dB
      <span class={`bar ${tone}`} aria-hidden="true">
        <span style={{ width: `${percent}%` }} />
      </span>
    </span>
  );
}

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
type ReportedWeight = z.infer<typeof report>["weights"][number];

/** The weights of a job's report, the worst first and those that did not change last. */
async function loadWeights({ id, artifacts }: JobDetail): Promise<ReportedWeight[]> {
  const file = artifacts.find(({ kind }) => kind === "report");
  if (file === undefined) return [];
  const answer = await fetch(artifactAddress(id, file.name));
  if (!answer.ok) throw new Error(`The report cannot be loaded: status ${answer.status}`);
  const { weights } = report.parse(await answer.json());
  return weights.toSorted(
    (a, b) => errorRank(a) - errorRank(b) || b.originalBytes - a.originalBytes,
  );
}

function errorRank({ error }: ReportedWeight): number {
  return error?.sqnrDb ?? Number.MAX_VALUE;
}

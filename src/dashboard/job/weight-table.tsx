import { type Signal, useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import { z } from "zod";
import type { JobDetail } from "../../contract/jobs/job.ts";
import { formatBytes } from "../../contract/text/format-bytes.ts";
import { graphHash } from "../shared/addresses.ts";
import { Button } from "../shared/button.tsx";
import { sqnrThresholdsDb } from "../shared/figures.ts";
import { loadArtifact } from "../session/load-artifact.ts";
import { TableHead } from "../shared/table-head.tsx";

const shownAtFirst = 12;
/** Rows that are drawn at once of a long list. */
const mostRows = 200;

/** The weights of a job, the worst first: what was done to each, and why. */
export function WeightTable({ weights }: { readonly weights: readonly ReportedWeight[] }) {
  const isWhole = useSignal(false);
  const wanted = useSignal("");
  const order = useSignal<WeightOrder>("worst first");
  const rows = useMemo(
    () => weights.filter(matches(wanted.value)).toSorted(orders[order.value]),
    [weights, wanted.value, order.value],
  );
  const shown = rows.slice(0, isWhole.value ? mostRows : shownAtFirst);
  const toggle = () => {
    isWhole.value = !isWhole.value;
    // Of the few that are shown, nothing says what was searched for.
    [wanted.value, order.value] = ["", "worst first"];
  };
  return (
    <section id="weights" class="card c7">
      <WeightsHead weights={weights} order={order.value}>
        {weights.length > shownAtFirst && (
          <Button look="quiet" onClick={toggle}>
            {isWhole.value ? "Show fewer" : "Show all weights"}
          </Button>
        )}
      </WeightsHead>
      {isWhole.value && <WeightTools wanted={wanted} order={order} found={rows.length} />}
      <WeightRows weights={shown} />
      {isWhole.value && shown.length < rows.length && (
        <p class="card-note">
          The first {mostRows} of {rows.length}: search to see others.
        </p>
      )}
    </section>
  );
}

const orders = {
  "worst first": (a: ReportedWeight, b: ReportedWeight) =>
    errorRank(a) - errorRank(b) || b.originalBytes - a.originalBytes,
  "largest first": (a: ReportedWeight, b: ReportedWeight) => b.originalBytes - a.originalBytes,
  "by name": (a: ReportedWeight, b: ReportedWeight) => a.name.localeCompare(b.name),
} as const;
type WeightOrder = keyof typeof orders;

/** A weight whose name, operators, form or reason have a text. */
function matches(text: string): (weight: ReportedWeight) => boolean {
  const wanted = text.trim().toLowerCase();
  return ({ name, usedBy, form, reason }) =>
    [name, ...usedBy, form ?? "unchanged", reason ?? ""].join(" ").toLowerCase().includes(wanted);
}

interface WeightToolsProps {
  readonly wanted: Signal<string>;
  readonly order: Signal<WeightOrder>;
  readonly found: number;
}

function WeightTools({ wanted, order, found }: WeightToolsProps) {
  return (
    <div class="card-tools">
      <input
        type="search"
        aria-label="Find weights"
        placeholder="Name, operator or reason"
        value={wanted.value}
        onInput={({ currentTarget }) => (wanted.value = currentTarget.value)}
      />
      <select
        aria-label="Order of the weights"
        value={order.value}
        onChange={({ currentTarget }) => (order.value = currentTarget.value as WeightOrder)}
      >
        {Object.keys(orders).map((name) => (
          <option key={name}>{name}</option>
        ))}
      </select>
      <span class="dim" role="status">
        {found} found
      </span>
    </div>
  );
}

interface WeightsHeadProps {
  readonly weights: readonly ReportedWeight[];
  readonly order: WeightOrder;
  readonly children: ComponentChildren;
}

function WeightsHead({ weights, order, children }: WeightsHeadProps) {
  const changed = weights.filter(({ form }) => form !== null).length;
  return (
    <header>
      <h2>Weights</h2>
      <span class="dim">
        {changed} of {weights.length} changed, {order}
      </span>
      <span class="grow" />
      {children}
    </header>
  );
}

const figureColumns = { Original: "num phone-off col-bytes", SQNR: "num col-sqnr" };
const shortColumns = { Weight: "", ...figureColumns };
const columns = { Weight: "", "Change and reason": "", ...figureColumns };

/** What was done to all of them is said once. */
function WeightRows({ weights }: { readonly weights: readonly ReportedWeight[] }) {
  const changes = new Set(weights.map(({ form, reason }) => `${form ?? "unchanged"} ${reason}`));
  const [first, second] = weights;
  const isSame = changes.size === 1 && second !== undefined;
  return (
    <>
      {isSame && first && (
        <p class="card-note">
          All that are shown: {first.form ?? "unchanged"}
          {first.reason !== null && `, ${first.reason}`}.
        </p>
      )}
      <table class={isSame ? "weights is-short" : "weights"}>
        <caption class="sr">Weights</caption>
        <TableHead columns={isSame ? shortColumns : columns} />
        <tbody>
          {weights.map((weight) => (
            <WeightRow key={weight.name} weight={weight} isShort={isSame} />
          ))}
        </tbody>
      </table>
    </>
  );
}

interface WeightRowProps {
  readonly weight: ReportedWeight;
  /** Without what was done to it. */
  readonly isShort: boolean;
}

function WeightRow({ weight, isShort }: WeightRowProps) {
  const { name, shape, usedBy, form, reason, originalBytes, error } = weight;
  return (
    <tr>
      <td class="two cut" title={name}>
        <a class="mono" href={graphHash(name)}>
          {name}
        </a>
        <small>
          {usedBy.join(", ")} {shape.join("×")}
        </small>
      </td>
      {!isShort && (
        <td class="two change">
          <span class="form-words">{form ?? "unchanged"}</span>
          <small>{reason}</small>
        </td>
      )}
      <td class="num phone-off">{formatBytes(originalBytes)}</td>
      <td class="num">
        {error ? (
          <Sqnr sqnrDb={error.sqnrDb} />
        ) : (
          <span class="dim">{form === null ? "exact" : "not measured"}</span>
        )}
      </td>
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
export type ReportedWeight = z.infer<typeof report>["weights"][number];

/** The weights of a job's report, the worst first and those that did not change last. */
export async function loadWeights(job: JobDetail): Promise<ReportedWeight[]> {
  const { weights = [] } = report.optional().parse(await loadArtifact(job, "report")) ?? {};
  return weights.toSorted(orders["worst first"]);
}

function errorRank({ error }: ReportedWeight): number {
  return error?.sqnrDb ?? Number.MAX_VALUE;
}

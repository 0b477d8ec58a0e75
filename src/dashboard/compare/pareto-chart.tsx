import "./compare.css";
import { useSignal } from "@preact/signals";
import { type Axis, type FigureName, layOutPareto, type ParetoChart } from "./pareto.ts";
import type { JobSummary } from "../../contract/jobs/job-summary.ts";
import { Choices } from "../shared/choices.tsx";
import { describeResult } from "./describe-result.ts";

const views = {
  "Size and accuracy": ["size", "accuracy"],
  "Latency and accuracy": ["latency", "accuracy"],
  "Size and latency": ["size", "latency"],
} as const satisfies Record<string, readonly [FigureName, FigureName]>;
type ViewName = keyof typeof views;
const viewNames = Object.keys(views) as ViewName[];

interface ParetoCardProps {
  readonly jobs: readonly JobSummary[];
  /** What a job is called here, by its id. */
  readonly names: ReadonlyMap<string, string>;
}

/** Results by two of their figures, with the front of those that nothing beats. */
export function ParetoCard({ jobs, names }: ParetoCardProps) {
  const view = useSignal<ViewName>("Size and accuracy");
  const chart = layOutPareto(jobs, views[view.value]);
  const left = jobs.length - chart.points.length;
  return (
    <section class="card c12">
      <header>
        <h2>Which result to ship</h2>
        <span class="grow" />
        <Choices
          label="Figures"
          names={viewNames}
          chosen={view.value}
          onChoose={(name) => (view.value = name)}
        />
      </header>
      {chart.points.length === 0 ? (
        <p class="card-note">No job has measured both figures.</p>
      ) : (
        <Plot chart={chart} names={names} />
      )}
      <ChartLegend chart={chart} left={left} />
    </section>
  );
}

interface PlotProps {
  readonly chart: ParetoChart;
  readonly names: ReadonlyMap<string, string>;
}

function Plot({ chart, names }: PlotProps) {
  const { points, front, across, down } = chart;
  const corners = front.map(({ left, top }) => `${left},${top}`).join(" ");
  return (
    <figure class="plot">
      <div class="plot-area">
        <Grid axis={across} side="left" />
        <Grid axis={down} side="top" />
        <svg viewBox="0 0 100 100" preserveAspectRatio="none" aria-hidden="true">
          <polyline points={corners} />
          {points.map(({ job, span }) => (
            <polyline key={job.id} class="plot-span" points={span} />
          ))}
        </svg>
        {points.map(({ job, left, top, look, hidden }) => (
          <a
            key={job.id}
            class={`plot-point is-${look}`}
            href={`/jobs/${job.id}`}
            style={{ left: `calc(${left}% + ${26 * hidden}px)`, top: `${top}%` }}
            title={`${names.get(job.id) ?? job.name}: ${describeResult(job)}`}
          >
            {(names.get(job.id) ?? "").slice(0, 1)}
            <span class="sr">
              {names.get(job.id) ?? job.name}: {describeResult(job)}
            </span>
          </a>
        ))}
      </div>
      <figcaption class="plot-across">{across.title}</figcaption>
      <span class="plot-down">{down.title}</span>
    </figure>
  );
}

/** The lines of an axis, its values and its limits. */
export function Grid({ axis, side }: { readonly axis: Axis; readonly side: "left" | "top" }) {
  return (
    <div class={`plot-grid is-${side}`} aria-hidden="true">
      {axis.ticks.map(({ text, at }) => (
        <i key={text} style={{ [side]: `${at}%` }}>
          <span>{text}</span>
        </i>
      ))}
      {axis.limits.map(({ text, at }) => (
        <i key={`limit ${text}`} class="is-limit" style={{ [side]: `${at}%` }}>
          <span>limit {text}</span>
        </i>
      ))}
    </div>
  );
}

const looks = {
  front: "on the front: nothing that passes is better in both",
  behind: "passes its gates, and another result is better",
  unsure: "passes its gates, and its latency is not known: timed in too few sessions",
  failing: "fails a gate, or has not completed",
} as const;

function ChartLegend({ chart, left }: { readonly chart: ParetoChart; readonly left: number }) {
  const present = new Set(chart.points.map(({ look }) => look));
  const shown = (Object.keys(looks) as (keyof typeof looks)[]).filter((look) => present.has(look));
  return (
    <ul class="plot-legend">
      {shown.map((look) => (
        <li key={look}>
          <i class={`plot-point is-${look}`} />
          {looks[look]}
        </li>
      ))}
      {left > 0 && chart.points.length > 0 && (
        <li class="dim">
          {left} without {left === 1 ? "both figures is" : "both figures are"} left out
        </li>
      )}
    </ul>
  );
}

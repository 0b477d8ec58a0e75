import "./compare.css";
import { useSignal } from "@preact/signals";
import { type Axis, type FigureName, layOutPareto, type ParetoChart } from "./pareto.ts";
import type { JobSummary } from "../../contract/jobs/job-summary.ts";
import { describeBasis } from "../shared/accuracy-basis.ts";
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
  const left = jobs.length - chart.points.length - chart.otherwise;
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
  const { points, places, front, across, down } = chart;
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
        {places.map((place) => (
          <PlacePoints key={place.points[0]?.job.id} place={place} names={names} />
        ))}
      </div>
      <figcaption class="plot-across">{across.title}</figcaption>
      <span class="plot-down">{down.title}</span>
    </figure>
  );
}

interface PlacePointsProps {
  readonly place: ParetoChart["places"][number];
  readonly names: PlotProps["names"];
}

/** The signs of the jobs at a place, side by side where there are several. */
function PlacePoints({ place: { left, top, points }, names }: PlacePointsProps) {
  const half = (signPx / 2) * Math.min(points.length, signsInRow);
  return (
    <div
      class="plot-place"
      style={{ left: `clamp(${half}px, ${left}%, 100% - ${half}px)`, top: `${top}%` }}
    >
      {points.map(({ job, look }) => {
        const text = `${names.get(job.id) ?? job.name}: ${describeResult(job)}`;
        return (
          <a key={job.id} class={`plot-point is-${look}`} href={`/jobs/${job.id}`} title={text}>
            {(names.get(job.id) ?? "").slice(0, 1)}
            <span class="sr">{text}</span>
          </a>
        );
      })}
    </div>
  );
}

/** A sign with the gap beside it, and how many are in a row. */
const [signPx, signsInRow] = [28, 4];

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
  failing: "fails a gate, has not completed, or is a dry run",
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
      {chart.places.some(({ points }) => points.length > 1) && (
        <li>
          <i class="plot-frame" />
          results with the same figures, or nearly
        </li>
      )}
      {left > 0 && chart.points.length > 0 && (
        <li class="dim">
          {left} without {left === 1 ? "both figures is" : "both figures are"} left out
        </li>
      )}
      {chart.basis !== undefined && chart.otherwise > 0 && (
        <li class="dim">
          {chart.otherwise} whose accuracy was not measured {describeBasis(chart.basis)}{" "}
          {chart.otherwise === 1 ? "is" : "are"} left out
        </li>
      )}
    </ul>
  );
}

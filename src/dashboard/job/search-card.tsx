import "../compare/compare.css";
import { Fragment } from "preact";
import type { Auto } from "../../contract/jobs/auto.ts";
import type { SearchPoint, SearchSummary } from "../../contract/jobs/search.ts";
import { formatBytes } from "../../contract/text/format-bytes.ts";
import { chooseScale, gatherPlaces } from "../compare/pareto.ts";
import { Grid } from "../compare/pareto-chart.tsx";

interface SearchCardProps {
  readonly search: SearchSummary;
  readonly auto: Auto | undefined;
}

/** The results that a search for a goal ran, by size and loss, and the weights that hurt most. */
export function SearchCard({ search, auto }: SearchCardProps) {
  const { points, candidates, seconds, mostSensitive, reached, missed } = search;
  return (
    <section class="card c12">
      <header>
        <h2>Search</h2>
        <span class="dim">
          {candidates} candidates in {Math.round(seconds)} s
        </span>
      </header>
      <p class="card-note">
        {reached ? "The result reaches the goal." : `The nearest result: ${missed.join("; ")}.`} The
        recipe that was found is <code>recipe.json</code>.
      </p>
      <SearchPlot points={points} auto={auto} />
      {mostSensitive.length > 0 && (
        <>
          <p class="card-note">Weights that hurt most, where only that one is quantized:</p>
          <dl class="pairs">
            {mostSensitive.map(({ name, form, sqnrDb, klDivergence }) => (
              <Fragment key={name}>
                <dt class="mono">{name}</dt>
                <dd>
                  {klDivergence === undefined
                    ? `${sqnrDb?.toFixed(1)} dB`
                    : `${klDivergence.toFixed(4)} nats`}{" "}
                  as {form}
                </dd>
              </Fragment>
            ))}
          </dl>
        </>
      )}
    </section>
  );
}

function SearchPlot({
  points,
  auto,
}: Pick<SearchCardProps, "auto"> & Pick<SearchSummary, "points">) {
  const { minSqnrDb, maxBytes } = auto ?? {};
  const limits = { bytes: listKnown(maxBytes), loss: listKnown(minSqnrDb) };
  const size = chooseScale([...points.map(({ bytes }) => bytes), ...limits.bytes]);
  const loss = chooseScale([...points.map(({ sqnrDb }) => sqnrDb), ...limits.loss]);
  const across = (bytes: number) => ({ text: formatBytes(bytes), at: size.place(bytes) });
  const down = (sqnrDb: number) => ({ text: `${sqnrDb} dB`, at: 100 - loss.place(sqnrDb) });
  const placed = points.map((point) => {
    return { point, left: across(point.bytes).at, top: down(point.sqnrDb).at };
  });
  const title = { size: "Size of the result", loss: "Accuracy (SQNR)" };
  return (
    <figure class="plot">
      <div class="plot-area">
        <Grid
          axis={{
            title: title.size,
            ticks: size.ticks.filter((bytes) => bytes >= 0).map(across),
            limits: limits.bytes.map(across),
          }}
          side="left"
        />
        <Grid
          axis={{ title: title.loss, ticks: loss.ticks.map(down), limits: limits.loss.map(down) }}
          side="top"
        />
        {gatherPlaces(placed, nearPercent).map(({ left, top, points: here }) => (
          <div
            key={`${left} ${top}`}
            class="plot-place"
            style={{ left: `${left}%`, top: `${top}%` }}
          >
            {here.map(({ point }, index) => (
              <i
                key={index}
                class={`plot-point is-small ${point.chosen ? "is-front" : "is-behind"}`}
                title={describePoint(point)}
              >
                <span class="sr">{describePoint(point)}</span>
              </i>
            ))}
          </div>
        ))}
      </div>
      <figcaption class="plot-across">{title.size}</figcaption>
      <span class="plot-down">{title.loss}</span>
    </figure>
  );
}

/** Percent within which dots hide each other. */
const nearPercent = 1;

function listKnown(limit: number | undefined): number[] {
  return limit === undefined ? [] : [limit];
}

function describePoint(point: SearchPoint): string {
  const { bytes, sqnrDb, predictedSqnrDb, perplexityRatio, form, chosen } = point;
  const parts = [
    chosen ? "The result" : undefined,
    formatBytes(bytes),
    `${sqnrDb.toFixed(1)} dB`,
    perplexityRatio === undefined ? undefined : `perplexity × ${perplexityRatio.toFixed(3)}`,
    predictedSqnrDb === undefined ? undefined : `predicted ${predictedSqnrDb.toFixed(1)} dB`,
    form === undefined ? undefined : `all weights ${form}`,
  ];
  return parts.filter((part) => part !== undefined).join(", ");
}

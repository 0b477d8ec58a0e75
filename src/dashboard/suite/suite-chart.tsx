import "uplot/dist/uPlot.min.css";
import { type Signal, useSignal, useSignalEffect } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { type Palette, readPalette, watchColours } from "../shared/palette.ts";
import { chartSpan, groupEqualLines } from "./equal-lines.ts";
import { type FigureChart, lineLook } from "./suite-lines.ts";

interface SuiteChartProps {
  readonly chart: FigureChart;
  /** Short names of the commits, oldest first. */
  readonly commits: readonly string[];
  readonly chosen: Signal<number | undefined>;
}

const heightPx = 220;
const axisPx = { across: 34, down: 72 };

/** A line for each target; a click chooses a commit. */
export function SuiteChart({ chart, commits, chosen }: SuiteChartProps) {
  const place = useRef<HTMLDivElement>(null);
  const drawn = useRef<uPlot | undefined>(undefined);
  const shown = useSignal<number | undefined>(undefined);
  useEffect(() => {
    const element = place.current;
    if (element === null) return undefined;
    const draw = () => {
      drawn.current?.destroy();
      drawn.current = drawChart(element, { chart, commits, chosen }, shown);
    };
    draw();
    const resized = new ResizeObserver(() => {
      drawn.current?.setSize({ width: element.clientWidth, height: heightPx });
    });
    resized.observe(element);
    const stopColours = watchColours(draw);
    return () => {
      resized.disconnect();
      stopColours();
      drawn.current?.destroy();
    };
  }, [chart]);
  useSignalEffect(() => {
    void chosen.value;
    drawn.current?.redraw(false);
  });
  const readout =
    shown.value === undefined
      ? describeLast(chart)
      : `${commits[shown.value]}: ${describePoint(chart, shown.value)}`;
  return (
    <section class="card c6 suite-chart">
      <header>
        <h2>{chart.title}</h2>
        <span class="grow" />
        <span class="dim cut" title={readout}>
          {readout}
        </span>
      </header>
      <div ref={place} class="chart" aria-hidden="true" />
      {chart.ways.length > 0 && (
        <p class="card-note">
          Measured in ways that cannot be compared: {chart.ways.join("; ")}. The table says where
          this changed.
        </p>
      )}
      {nameEqualLines(chart).map((names) => (
        <p key={names} class="card-note">
          {names} are one line
        </p>
      ))}
    </section>
  );
}

/** The figures of the targets at a commit, in place of a box over the lines. */
function describePoint({ lines, format }: FigureChart, index: number): string {
  const points = lines.flatMap(({ target, values, lows, highs }) => {
    const [value, low, high] = [values[index] ?? null, lows[index] ?? null, highs[index] ?? null];
    if (value === null) return [];
    const ends = low === null || high === null ? "" : ` (${format(low)} to ${format(high)})`;
    return [{ target, figure: `${format(value)}${ends}` }];
  });
  const byFigure = Map.groupBy(points, ({ figure }) => figure);
  return [...byFigure]
    .map(([figure, equal]) => `${joinNames(equal.map(({ target }) => target))} ${figure}`)
    .join(", ");
}

/** The targets of each line that hides others. */
function nameEqualLines(chart: FigureChart): string[] {
  const hidden = groupEqualLines(chart.lines).filter((group) => group.length > 1);
  return hidden.map((group) => joinNames(group.map((index) => chart.lines[index]?.target ?? "")));
}

function joinNames(names: readonly string[]): string {
  return new Intl.ListFormat("en").format(names);
}

function describeLast({ lines, format, limit }: FigureChart): string {
  const last = lines.flatMap(({ values }) => values.findLast((value) => value !== null) ?? []);
  const ends = new Set([format(Math.min(...last)), format(Math.max(...last))]);
  const gate = limit === undefined ? "" : `, gate ${format(limit)}`;
  return `now ${[...ends].join(" to ")}${gate}`;
}

function drawChart(
  element: HTMLElement,
  { chart, commits, chosen }: SuiteChartProps,
  shown: Signal<number | undefined>,
): uPlot {
  const palette = readPalette();
  const axis = describeAxis(palette);
  const options: uPlot.Options = {
    width: element.clientWidth,
    height: heightPx,
    legend: { show: false },
    scales: {
      x: { time: false, range: () => [-0.4, commits.length - 0.6] },
      y: { range: (_, least, most) => widenRange(...coverAll(chart, least, most)) },
    },
    axes: [
      {
        ...axis,
        size: axisPx.across,
        incrs: [1, 2, 5, 10, 20, 50],
        values: (_, at) => at.map((x) => commits[x] ?? ""),
      },
      { ...axis, size: axisPx.down, values: (_, at) => at.map(chart.format) },
    ],
    series: [{}, ...describeLines(chart, palette)],
    cursor: { y: false, points: { size: 9 } },
    hooks: {
      draw: [
        (plot) => drawIntervals(plot, chart, palette),
        (plot) => drawLimit(plot, chart.limit, palette),
        (plot) => drawChosen(plot, chosen.peek(), palette),
      ],
      setCursor: [({ cursor }) => (shown.value = cursor.idx ?? undefined)],
    },
  };
  const data = [commits.map((_, index) => index), ...chart.lines.map(({ values }) => [...values])];
  const plot = new uPlot(options, data as uPlot.AlignedData, element);
  plot.over.addEventListener("click", () => (chosen.value = plot.cursor.idx ?? undefined));
  return plot;
}

/** Ends of intervals and the limit are to be seen too, where they are not far away. */
function coverAll({ lines, limit }: FigureChart, least: number | null, most: number | null) {
  const ends = lines.flatMap(({ lows, highs }) => [...lows, ...highs]);
  // An interval of too few sessions would leave nothing of the others to be seen.
  const near = ends.filter((end) => (end ?? 0) > (least ?? 0) / 2 && (end ?? 0) < 2 * (most ?? 0));
  const known = [least, most, ...near].flatMap((value) => value ?? []);
  const [low, high] = [Math.min(...known), Math.max(...known)];
  const span = Math.max(high - low, 0.1 * Math.abs(high));
  const isNear = limit !== undefined && limit > low - 2 * span && limit < high + 2 * span;
  const all = isNear ? [limit, low, high] : [low, high];
  return [Math.min(...all), Math.max(...all)] as const;
}

function drawIntervals(plot: uPlot, { lines }: FigureChart, palette: Palette): void {
  const { ctx, bbox } = plot;
  ctx.save();
  // An interval that is wider than the scale would cross the axis and its texts.
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  ctx.lineWidth = devicePixelRatio;
  for (const [index, { lows, highs }] of lines.entries()) {
    ctx.strokeStyle = palette[lineLook(index).colour];
    for (const [place, low] of lows.entries()) {
      const high = highs[place];
      if (low === null || high === null || high === undefined) continue;
      const x = plot.valToPos(place, "x", true);
      ctx.beginPath();
      ctx.moveTo(x, plot.valToPos(low, "y", true));
      ctx.lineTo(x, plot.valToPos(high, "y", true));
      ctx.stroke();
    }
  }
  ctx.restore();
}

function drawLimit(plot: uPlot, limit: number | undefined, palette: Palette): void {
  if (limit === undefined) return;
  const { ctx, bbox } = plot;
  const y = plot.valToPos(limit, "y", true);
  if (y < bbox.top || y > bbox.top + bbox.height) return;
  ctx.save();
  ctx.strokeStyle = palette.bad;
  ctx.lineWidth = devicePixelRatio;
  ctx.setLineDash([4 * devicePixelRatio, 4 * devicePixelRatio]);
  ctx.beginPath();
  ctx.moveTo(bbox.left, y);
  ctx.lineTo(bbox.left + bbox.width, y);
  ctx.stroke();
  ctx.restore();
}

function widenRange(least: number | null, most: number | null): [number, number] {
  const [low, high] = [least ?? 0, most ?? 1];
  const middle = (low + high) / 2;
  const half = chartSpan(low, high) / 2;
  return [middle - half, middle + half];
}

function describeAxis(palette: Palette): uPlot.Axis {
  const lines = { stroke: palette.line, width: 1 };
  const font = "11px Inter, system-ui, sans-serif";
  return { stroke: palette["text-3"], font, grid: lines, ticks: lines };
}

/** Of equal lines, each is drawn over a wider one, which stands out on both sides of it. */
function describeLines(chart: FigureChart, palette: Palette): uPlot.Series[] {
  const groups = groupEqualLines(chart.lines);
  return chart.lines.map((_, index) => {
    const group = groups.find((each) => each.includes(index)) ?? [index];
    const above = group.length - 1 - group.indexOf(index);
    const { colour, dash } = lineLook(index);
    const stroke = palette[colour];
    return {
      stroke,
      width: 1.75 + 3 * above,
      dash: [...dash],
      spanGaps: true,
      points: { show: true, size: 6 + 5 * above, fill: stroke, stroke },
    };
  });
}

function drawChosen(plot: uPlot, index: number | undefined, palette: Palette): void {
  if (index === undefined) return;
  const { ctx, bbox } = plot;
  const x = plot.valToPos(index, "x", true);
  ctx.save();
  ctx.strokeStyle = palette.focus;
  ctx.lineWidth = devicePixelRatio;
  ctx.beginPath();
  ctx.moveTo(x, bbox.top);
  ctx.lineTo(x, bbox.top + bbox.height);
  ctx.stroke();
  ctx.restore();
}

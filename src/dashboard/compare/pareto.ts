import type { JobSummary } from "../../contract/jobs/job-summary.ts";
import { explainWideInterval } from "../../contract/jobs/latency.ts";
import { groupByBasis } from "../shared/accuracy-basis.ts";
import { toLatencyRatio } from "../shared/figures.ts";
import type { GateName } from "../../contract/jobs/gate-table.ts";
import { formatTimes } from "../../contract/text/format-figure.ts";
import { isShippable } from "../shared/verdict.ts";

/** A figure that a chart has an axis for. */
interface AxisFigure {
  readonly title: string;
  readonly read: (job: JobSummary) => number | null;
  readonly isLowerBetter: boolean;
  /** Ends of the interval that the figure is known to lie in; undefined where it says nothing. */
  readonly interval?: (job: JobSummary) => readonly [low: number, high: number] | undefined;
  readonly format: (value: number) => string;
  /** The least difference that the format shows. */
  readonly finest: number;
  /** The gate whose limit is a line across the axis. */
  readonly gate: GateName;
}

export const axisFigures = {
  size: {
    title: "Size, relative to the original",
    read: ({ figures }) => figures.sizeRatio,
    isLowerBetter: true,
    format: (ratio) => `${Math.round(100 * ratio)} %`,
    finest: 0.01,
    gate: "maxSizeRatio",
  },
  accuracy: {
    title: "Accuracy (SQNR)",
    read: ({ figures }) => figures.sqnrDb,
    isLowerBetter: false,
    format: (value) => `${Number(value.toFixed(1))} dB`,
    finest: 0.1,
    gate: "minSqnrDb",
  },
  latency: {
    title: "Latency, relative to the original",
    read: ({ figures }) => figures.latencyRatio,
    isLowerBetter: true,
    interval: ({ figures }) => readInterval(figures),
    format: (ratio) => formatTimes(ratio),
    finest: 0.01,
    gate: "maxLatencyRatio",
  },
} as const satisfies Record<string, AxisFigure>;

/** A latency without an interval is taken as it is. */
function readInterval(figures: JobSummary["figures"]): readonly [number, number] | undefined {
  const latency = toLatencyRatio(figures);
  if (latency === undefined || explainWideInterval(latency) !== undefined) return undefined;
  const { ratio, ratioLow = ratio, ratioHigh = ratio } = latency;
  return [ratioLow, ratioHigh];
}

export type FigureName = keyof typeof axisFigures;

/** A job at its place, percent of the chart from the left and from the top. */
interface PlacedJob {
  readonly job: JobSummary;
  readonly left: number;
  readonly top: number;
  /**
   * `front`: no other result that may be shipped is better in both figures. `unsure`: one of the
   * figures was measured, and is not known.
   */
  readonly look: "front" | "behind" | "unsure" | "failing";
  /** Corners of a line over the intervals of its figures. */
  readonly span: string;
}

export interface ParetoChart {
  readonly points: readonly PlacedJob[];
  /** The same points, each with those that it would hide. */
  readonly places: readonly Place<PlacedJob>[];
  /** Corners of the front's line, from left to right. */
  readonly front: readonly { readonly left: number; readonly top: number }[];
  readonly across: Axis;
  readonly down: Axis;
  /** What the accuracy of the points was measured on, where it is a figure of the chart. */
  readonly basis: string | undefined;
  /** How many jobs with both figures are left out, as their accuracy was measured otherwise. */
  readonly otherwise: number;
}

export interface Axis {
  readonly title: string;
  /** Values with their places, percent. */
  readonly ticks: readonly { readonly text: string; readonly at: number }[];
  readonly limits: readonly { readonly text: string; readonly at: number }[];
}

/**
 * Places jobs by two of their figures; those that lack one are left out, and those whose accuracy
 * was measured otherwise than that of most.
 */
export function layOutPareto(
  all: readonly JobSummary[],
  [across, down]: readonly [FigureName, FigureName],
): ParetoChart {
  const [x, y]: [AxisFigure, AxisFigure] = [axisFigures[across], axisFigures[down]];
  const placeable = all.flatMap((job) => {
    const [atX, atY] = [x.read(job), y.read(job)];
    return atX === null || atY === null ? [] : [{ job, x: atX, y: atY }];
  });
  const isByAccuracy = across === "accuracy" || down === "accuracy";
  const [[first] = []] = groupByBasis(placeable.map(({ job }) => job));
  const basis = isByAccuracy ? first?.accuracyBasis : undefined;
  const isAlike = (job: JobSummary) => basis === undefined || job.accuracyBasis === basis;
  const jobs = all.filter(isAlike);
  const measured = placeable.filter(({ job }) => isAlike(job));
  const scaleOf = (figure: AxisFigure) =>
    chooseScale(
      [...jobs.flatMap((job) => figure.read(job) ?? []), ...listLimits(figure, jobs)],
      figure.finest,
    );
  const [scaleX, scaleY] = [scaleOf(x), scaleOf(y)];
  const isUnsure = ({ job }: Point) =>
    [x, y].some(({ interval }) => interval !== undefined && interval(job) === undefined);
  const front = findFront(
    measured.filter((point) => !isUnsure(point)),
    x,
    y,
  );
  const place = (point: Pick<Point, "x" | "y">) => ({
    left: scaleX.place(point.x),
    top: 100 - scaleY.place(point.y),
  });
  const points = measured.map((point): PlacedJob => {
    const look = isUnsure(point) ? "unsure" : front.includes(point) ? "front" : "behind";
    const at = place(point);
    const { job } = point;
    const [[left, right], [low, high]] = [
      x.interval?.(job) ?? [point.x, point.x],
      y.interval?.(job) ?? [point.y, point.y],
    ];
    const span = [place({ x: left, y: low }), place({ x: right, y: high })]
      .map((corner) => `${clampPercent(corner.left)},${clampPercent(corner.top)}`)
      .join(" ");
    return { job, ...at, span, look: isShippable(job) ? look : "failing" };
  });
  return {
    points,
    places: gatherPlaces(points, nearPercent),
    front: front.map(place).toSorted((a, b) => a.left - b.left),
    across: describeAxis(x, scaleX, jobs, (at) => at),
    down: describeAxis(y, scaleY, jobs, (at) => 100 - at),
    basis,
    otherwise: placeable.length - measured.length,
  };
}

/** Intervals may end beyond the chart. */
function clampPercent(at: number): number {
  return Math.min(100, Math.max(0, at));
}

/** Percent within which the signs of two jobs hide each other. */
const nearPercent = 2;

/** A place of a chart, percent from the left and from the top, with what lies there. */
interface Place<Point> {
  readonly left: number;
  readonly top: number;
  readonly points: readonly Point[];
}

/** Gathers points that would hide each other: charts are about twice as wide as high. */
export function gatherPlaces<Point extends { readonly left: number; readonly top: number }>(
  points: readonly Point[],
  near: number,
): Place<Point>[] {
  const places: (Place<Point> & { points: Point[] })[] = [];
  for (const point of points) {
    const { left, top } = point;
    const here = places.find(
      (place) => Math.abs(place.left - left) < near && Math.abs(place.top - top) < 2 * near,
    );
    if (here === undefined) places.push({ left, top, points: [point] });
    else here.points.push(point);
  }
  return places;
}

interface Point {
  readonly job: JobSummary;
  readonly x: number;
  readonly y: number;
}

/** Results that may be shipped, and that no other such result beats in both figures. */
function findFront(points: readonly Point[], x: AxisFigure, y: AxisFigure): Point[] {
  const good = points.filter(({ job }) => isShippable(job));
  const isBetter = (figure: AxisFigure, a: number, b: number) =>
    figure.isLowerBetter ? a < b : a > b;
  const beats = (a: Point, b: Point) =>
    !isBetter(x, b.x, a.x) &&
    !isBetter(y, b.y, a.y) &&
    (isBetter(x, a.x, b.x) || isBetter(y, a.y, b.y));
  return good.filter((point) => !good.some((other) => beats(other, point)));
}

export interface Scale {
  readonly ticks: readonly number[];
  /** Percent from the least value on. */
  readonly place: (value: number) => number;
}

const wantedTicks = 5;
const steps = [1, 2, 2.5, 5, 10];

/**
 * A scale of round values around figures and limits.
 * @param finest the least step between two of them
 */
export function chooseScale(values: readonly number[], finest = 0): Scale {
  const [least, most] = [Math.min(...values), Math.max(...values)];
  const span = most - least || Math.abs(most) || 1;
  const power = 10 ** Math.floor(Math.log10(span / wantedTicks));
  const wanted = power * (steps.find((each) => each * power >= span / wantedTicks) ?? 10);
  const step = Math.max(wanted, finest);
  const first = Math.floor((least - span * 0.06) / step);
  const last = Math.ceil((most + span * 0.06) / step);
  const ticks = Array.from({ length: last - first + 1 }, (_, index) => (first + index) * step);
  const place = (value: number) => (100 * (value / step - first)) / (last - first);
  return { ticks, place };
}

function listLimits({ gate }: AxisFigure, jobs: readonly JobSummary[]): number[] {
  const limits = jobs.flatMap(({ gates }) => gates.filter((each) => each.gate === gate));
  return [...new Set(limits.map(({ limit }) => limit))];
}

function describeAxis(
  figure: AxisFigure,
  { ticks, place }: Scale,
  jobs: readonly JobSummary[],
  turn: (at: number) => number,
): Axis {
  const { title, format } = figure;
  const describe = (value: number) => ({ text: format(value), at: turn(place(value)) });
  return {
    title,
    ticks: ticks.map(describe),
    limits: listLimits(figure, jobs).map(describe),
  };
}

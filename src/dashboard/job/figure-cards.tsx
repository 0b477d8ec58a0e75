import { summarizeJob } from "../../contract/jobs/summarize-job.ts";
import { sampleNames } from "../../contract/jobs/figure-names.ts";
import { formatLimit, formatLimited } from "../../contract/jobs/describe-gate.ts";
import { type GateKind, type GateName, gateTable } from "../../contract/jobs/gate-table.ts";
import type { JobDetail } from "../../contract/jobs/job.ts";
import {
  explainWideInterval,
  formatInterval,
  type Latency,
  type LatencyRatio,
} from "../../contract/jobs/latency.ts";
import { nextStep } from "../../contract/jobs/next-steps.ts";
import { formatBytes } from "../../contract/text/format-bytes.ts";
import { formatDecibels, formatTimes } from "../../contract/text/format-figure.ts";
import { isTerminal } from "../../contract/jobs/status.ts";
import type { TermName } from "../../contract/jobs/terms.ts";
import {
  compareFigures,
  type ComparedFigure,
  explainUncompared,
  type FigureChange,
  judgeRatio,
} from "../shared/figures.ts";
import { describeCommit, formatMs, formatSaving } from "../shared/format.ts";
import { lacksBaseline } from "../shared/gate-words.ts";
import { Prose } from "../shared/prose.tsx";
import { ToneSign } from "../shared/status.tsx";
import { Term } from "../shared/term.tsx";

type Telemetry = JobDetail["telemetry"];

interface FigureCardsProps {
  readonly job: JobDetail;
  /** Whether figures have places before they are known. */
  readonly wasLive: boolean;
}

/** Size, accuracy and latency, each with its gate on a scale and beside the baseline's. */
export function FigureCards({ job, wasLive }: FigureCardsProps) {
  const { size, accuracy, latency } = job.telemetry;
  const { baseline } = job;
  const changes = compareFigures(summarizeJob(job));
  const uncompared = explainUncompared(job);
  const describe = (gate: LimitedGate, figure: ComparedFigure) => ({
    gate,
    limit: job.gateLimits[gate],
    job,
    change: changes.find((each) => each.figure === figure),
    whyNot: uncompared.find((each) => each.figure === figure)?.why,
    commit: baseline && describeCommit(baseline),
  });
  const isOver = isTerminal(job.status);
  if (wasLive && isOver && !size && !accuracy && !latency) return <NoFigures job={job} />;
  return (
    <>
      {size && <SizeCard size={size} {...describe("maxSizeRatio", "size")} />}
      {!size && wasLive && <UnknownFigure title="Size" isOver={isOver} />}
      {accuracy && <AccuracyCard accuracy={accuracy} {...describe("minSqnrDb", "accuracy")} />}
      {!accuracy && wasLive && <UnknownFigure title="Accuracy" isOver={isOver} />}
      {latency && <LatencyCard latency={latency} {...describe("maxLatencyRatio", "latency")} />}
      {!latency && wasLive && <UnknownFigure title="Latency" isOver={isOver} />}
    </>
  );
}

/** In place of all figures of a job that ended before it measured any. */
function NoFigures({ job }: Pick<FigureCardsProps, "job">) {
  return (
    <section class="card figure c12">
      <h2>Size, accuracy and latency</h2>
      <div class="big dim">No figures</div>
      <p>
        The job ended before it measured any. <Prose text={nextStep(job) ?? ""} />
      </p>
    </section>
  );
}

/** The place of a figure that is not known yet. */
function UnknownFigure({ title, isOver }: { readonly title: string; readonly isOver: boolean }) {
  return (
    <section class="card figure c4">
      <h2>{title}</h2>
      <div class="big dim">—</div>
      <p>{isOver ? "not measured" : "not measured yet"}</p>
    </section>
  );
}

type LimitedGate = "maxSizeRatio" | "minSqnrDb" | "maxLatencyRatio";

/** The gates that limit how much worse than the baseline's a figure may be. */
const changeGates = {
  maxSizeRatio: "maxSizeRegression",
  minSqnrDb: "maxSqnrDropDb",
  maxLatencyRatio: "maxLatencyRegression",
} as const satisfies Record<LimitedGate, GateName>;

interface LimitProps {
  readonly gate: LimitedGate;
  readonly limit: number | undefined;
  readonly job: JobDetail;
  /** Against the baseline; undefined where the two cannot be compared. */
  readonly change: FigureChange | undefined;
  /** Why they cannot. */
  readonly whyNot: string | undefined;
  /** The baseline's commit; null where there is no baseline. */
  readonly commit: string | null;
}

interface SizeCardProps extends LimitProps {
  readonly size: NonNullable<Telemetry["size"]>;
}

function SizeCard({ size, ...limited }: SizeCardProps) {
  const { resultBytes, originalBytes, ratio, predicted } = size;
  const share = sayFigure(limited, ratio) ?? formatPercentage(ratio);
  return (
    <FigureCard
      title={predicted ? "Size, predicted" : "Size"}
      big={formatBytes(resultBytes)}
      beside={`${share} of ${formatBytes(originalBytes)}`}
      below={formatSaving(originalBytes - resultBytes)}
      scale={{ from: 0, to: 1, format: formatPercentage, value: ratio }}
      {...limited}
    />
  );
}

interface AccuracyCardProps extends LimitProps {
  readonly accuracy: NonNullable<Telemetry["accuracy"]>;
}

function AccuracyCard({ accuracy, ...limited }: AccuracyCardProps) {
  const { sqnrDb, cosine, samples, data, level, outputs, language } = accuracy;
  const worst = outputs.length > 1 ? `Worst of ${outputs.length} outputs, on` : "On";
  // A ruined result lies below 0, and must not look as if it were 0.
  const leastDb = Math.min(0, 10 * Math.floor(sqnrDb / 10));
  const measured = `${worst} ${samples} ${sampleNames[data]}`;
  return (
    <FigureCard
      title="Accuracy"
      term="sqnr"
      big={(sayFigure(limited, sqnrDb) ?? formatDecibels(sqnrDb)).replace("-", "−")}
      beside={
        language === undefined
          ? `cosine ${cosine.toFixed(4)}`
          : `perplexity ×${language.perplexityRatio.toFixed(3)}`
      }
      below={level === "weights" ? "Worst of all weights" : measured}
      scale={{ from: leastDb, to: 60, format: formatWholeDb, value: sqnrDb }}
      {...limited}
    />
  );
}

interface LatencyCardProps extends LimitProps {
  readonly latency: Latency;
}

const judgements = {
  better: "faster than the original",
  worse: "slower than the original",
  same: "no measurable difference from the original",
} as const;

function LatencyCard({ latency, ...limited }: LatencyCardProps) {
  const { ratio, ratioLow, ratioHigh, original, result, shapes = [] } = latency;
  const medians = `${formatMs(result.p50Ms)}, original ${formatMs(original.p50Ms)}`;
  const judgement = explainWideInterval(latency) ?? judgements[judgeRatio(latency)];
  const isOtherWay = ratio > 1 !== result.p50Ms > original.p50Ms;
  const paired = isOtherWay ? "; the ratio is of runs in pairs, the medians are of all runs" : "";
  return (
    <FigureCard
      title="Latency"
      term="latency"
      big={sayFigure(limited, ratio) ?? formatTimes(ratio)}
      beside={describeInterval(latency)}
      below={
        shapes.length > 0
          ? shapes.map(describeShape).join("; ")
          : `${medians}, ${result.runs} runs; ${judgement}${paired}`
      }
      scale={{
        from: 0.4,
        to: 1.6,
        format: (value) => formatTimes(value, 2),
        value: ratio,
        low: ratioLow,
        high: ratioHigh,
        original: 1,
      }}
      {...limited}
    />
  );
}

function describeShape(shape: NonNullable<Latency["shapes"]>[number]): string {
  const medians = `${formatMs(shape.resultP50Ms)}, original ${formatMs(shape.originalP50Ms)}`;
  return `${formatTimes(shape.ratio)} for ${shape.inputs}: ${medians}`;
}

/** With enough decimals to differ from its limit as shown; undefined where it has none. */
function sayFigure({ gate, limit }: LimitProps, value: number): string | undefined {
  return limit === undefined ? undefined : formatLimited({ gate, limit }, value);
}

/** Empty if there is none, and where it says nothing. */
function describeInterval(latency: LatencyRatio): string {
  const { ratioLow, ratioHigh } = latency;
  if (ratioLow === undefined || ratioHigh === undefined) return "";
  if (explainWideInterval(latency) !== undefined) return "";
  return `95 % interval ${formatInterval(ratioLow, ratioHigh)}`;
}

function formatPercentage(share: number): string {
  return `${Math.round(100 * share)} %`;
}

function formatWholeDb(value: number): string {
  return `${String(Math.round(value)).replace("-", "−")} dB`;
}

interface FigureCardProps extends LimitProps {
  readonly title: string;
  /** The word that its figure is in. */
  readonly term?: TermName;
  readonly big: string;
  readonly beside: string;
  readonly below: string;
  readonly scale: Scale;
}

function FigureCard({ title, term, big, beside, below, scale, ...limited }: FigureCardProps) {
  const { gate, limit } = limited;
  return (
    <section class="card figure c4">
      <h2>
        <Term name={term}>{title}</Term>
        <Verdict {...limited} />
      </h2>
      <div class="big">
        {big} <small>{beside}</small>
      </div>
      <p title={below}>{below}</p>
      <ChangeLine {...limited} />
      <FigureScale scale={scale} gate={gate} limit={limit} />
    </section>
  );
}

/** How a figure differs from the baseline's. */
function ChangeLine({ change, whyNot, commit }: Pick<LimitProps, "change" | "whyNot" | "commit">) {
  if (commit === null) return undefined;
  if (change === undefined) {
    return (
      <p class="dim" title={whyNot}>
        {commit}: {whyNot}
      </p>
    );
  }
  const { judgement } = change;
  const same = judgement === "same" ? "same as" : `${judgement} than`;
  return (
    <p>
      <b class={`judged ${judgement}`}>{change.change}</b> {same} {commit}, {change.before} there
    </p>
  );
}

/** What the gate on the figure found, or that on how much worse than the baseline's it is. */
function Verdict({ gate, limit: ownLimit, job }: LimitProps) {
  const name = ownLimit === undefined ? changeGates[gate] : gate;
  const limit = job.gateLimits[name];
  if (limit === undefined) return <span class="dim">no limit</span>;
  const { title, bound }: GateKind = gateTable[name];
  const subject = name === gate ? "" : `${title.split(" ")[0]?.toLowerCase()} `;
  const words = `${subject}${bound === "max" ? "≤" : "≥"} ${formatLimit({ gate: name, limit })}`;
  const result = job.gates.find((each) => each.gate === name);
  if (result === undefined) return <span class="dim">{words}</span>;
  if (lacksBaseline(result, job.baseline !== null)) {
    return <span class="dim">{words}, no baseline yet</span>;
  }
  if (result.passed) return <ToneSign tone="calm" icon="check" words={`passes ${words}`} />;
  if (result.level === "fail") return <ToneSign tone="bad" icon="bad" words={`fails ${words}`} />;
  // A gate that could not decide says why.
  const verb = result.note === undefined ? "misses " : "uncertain: ";
  return <ToneSign tone="warn" icon="warn" words={verb + words} />;
}

interface Scale {
  /** The ends of the scale. */
  readonly from: number;
  readonly to: number;
  readonly format: (value: number) => string;
  readonly value: number;
  /** The interval that the value is known to lie in. */
  readonly low?: number | undefined;
  readonly high?: number | undefined;
  readonly original?: number;
}

/** Half the room that a label takes of the scale. */
const labelPercent = 16;

interface ScaleProps extends Pick<LimitProps, "gate" | "limit"> {
  readonly scale: Scale;
}

/** A figure on its scale: interval, value, original and limit. Words beside it say the same. */
function FigureScale({ scale, gate, limit }: ScaleProps) {
  const { value, low = value, high = value } = scale;
  const [start, end] = [placeOnScale(scale, low), placeOnScale(scale, high)];
  const limitAt = limit === undefined ? undefined : placeOnScale(scale, limit);
  return (
    <div class="scale" aria-hidden="true">
      {limitAt !== undefined && <Beyond bound={gateTable[gate].bound} at={limitAt} />}
      <i class="range" style={{ left: `${start}%`, width: `${end - start}%` }} />
      <Marks scale={scale} gate={gate} limit={limit} />
      <i class="dot" style={{ left: `${placeOnScale(scale, value)}%` }} />
      <Ends scale={scale} marks={listMarks(scale, limit)} />
    </div>
  );
}

/** Percent of the scale. */
function placeOnScale({ from, to }: Scale, at: number): number {
  return (100 * (Math.min(to, Math.max(from, at)) - from)) / (to - from);
}

function listMarks(scale: Scale, limit: number | undefined): number[] {
  const marks = [scale.original, limit];
  return marks.flatMap((at) => (at === undefined ? [] : [placeOnScale(scale, at)]));
}

function Marks({ scale, gate, limit }: ScaleProps) {
  const [first = 0, last = first] = listMarks(scale, limit);
  const isCrowded = last !== first && Math.abs(last - first) < 2 * labelPercent;
  const [before, behind] = first <= last ? ["end", "start"] : ["start", "end"];
  return (
    <>
      {scale.original !== undefined && (
        <Mark look="" at={first} text="original" side={isCrowded ? before : ""} />
      )}
      {limit !== undefined && (
        <Mark
          look="limit"
          at={last}
          text={`limit ${formatLimit({ gate, limit })}`}
          side={isCrowded ? behind : ""}
        />
      )}
    </>
  );
}

/** What the ends of the scale stand for, where no other label is. */
function Ends({ scale, marks }: { readonly scale: Scale; readonly marks: readonly number[] }) {
  const isFree = (at: number) => marks.every((mark) => Math.abs(mark - at) > labelPercent);
  return (
    <>
      {isFree(0) && <span class="label start">{scale.format(scale.from)}</span>}
      {isFree(100) && <span class="label end at-end">{scale.format(scale.to)}</span>}
    </>
  );
}

function Beyond({ bound, at }: Pick<GateKind, "bound"> & { readonly at: number }) {
  const [left, width] = bound === "max" ? [at, 100 - at] : [0, at];
  return <i class="over" style={{ left: `${left}%`, width: `${width}%` }} />;
}

interface MarkProps {
  readonly look: string;
  /** Percent of the scale. */
  readonly at: number;
  readonly text: string;
  /** `start` and `end` where the label has no room in the middle. */
  readonly side: string | undefined;
}

function Mark({ look, at, text, side }: MarkProps) {
  return (
    <>
      <i class={`mark ${look}`} style={{ left: `${at}%` }} />
      <span class={`label ${side}`} style={{ left: `${at}%` }}>
        {text}
      </span>
    </>
  );
}

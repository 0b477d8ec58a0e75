import { type Signal, signal, useSignal } from "@preact/signals";
import type { RefObject } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { JobLog, readStep } from "./job-log.ts";
import { parseAnsi } from "./parse-ansi.ts";
import { scaleScroll } from "./scale-scroll.ts";
import type { JobDetail } from "../../contract/jobs/job.ts";
import type { LogLine } from "../../contract/jobs/log.ts";
import { Button, Icon } from "../shared/button.tsx";
import { formatClock, formatExactTime } from "../shared/format.ts";
import { MaybeError } from "../shared/notice.tsx";
import { useScrollFromAddress } from "../shared/scroll-from-address.ts";

/** The log of a job: live, to be searched, with a link to each line. */
export function JobLogCard({ job: { id: jobId } }: { readonly job: JobDetail }) {
  const log = useMemo(() => new JobLog(), [jobId]);
  const search = useMemo(() => new LogSearch(log), [log]);
  const card = useScrollFromAddress("log");
  const hit = useSignal(0);
  const folded = useSignal<ReadonlySet<string>>(new Set());
  const isFollowing = useSignal(!location.hash.startsWith("#L"));
  useEffect(() => log.follow(jobId), [jobId]);
  useEffect(() => log.count.subscribe(() => search.goOn()), [log]);
  const goTo = (index: number) => {
    isFollowing.value = false;
    // A line that is folded away cannot be shown.
    folded.value = new Set();
    const hits = Math.max(1, search.hits.length);
    hit.value = (index + hits) % hits;
  };
  return (
    <section ref={card} id="log" class="card c12">
      <header class="log-head">
        <h2>Log</h2>
        <span class="dim">{log.count.value.toLocaleString("en")} lines</span>
        <StepFolds log={log} folded={folded} />
        <span class="grow" />
        <LogSearchForm search={search} hit={hit.value} onHit={goTo} />
        {!log.isComplete.value && <FollowButton isFollowing={isFollowing} />}
        <a class="button" href={`/v1/jobs/${jobId}/logs?follow=false`} download={`${jobId}.log`}>
          Download
        </a>
      </header>
      <MaybeError error={log.error.value} />
      <LogView
        lines={listShownLines(log, folded.value)}
        isFollowing={isFollowing}
        shown={folded.value.size === 0 ? findShown(search, hit.value) : undefined}
        wanted={search.wanted.value}
      />
    </section>
  );
}

/** All lines, or those of steps that are not folded. */
function listShownLines({ lines, count }: JobLog, folded: ReadonlySet<string>) {
  // The lines grow in place: their number says when there are more.
  if (folded.size === 0) return { all: lines, count: count.value };
  const all = lines.slice(0, count.value).filter((line) => {
    const step = readStep(line);
    return step === undefined || !folded.has(step);
  });
  return { all, count: all.length };
}

interface StepFoldsProps {
  readonly log: JobLog;
  readonly folded: Signal<ReadonlySet<string>>;
}

/** The steps of the work, each of which can be folded away. */
function StepFolds({ log, folded }: StepFoldsProps) {
  const toggle = (step: string) => {
    const others = [...folded.value].filter((each) => each !== step);
    folded.value = new Set(folded.value.has(step) ? others : [...others, step]);
  };
  return (
    <div class="log-steps" role="group" aria-label="Steps that are shown">
      {[...log.steps.value].map(([step, lines]) => (
        <button
          key={step}
          type="button"
          aria-pressed={!folded.value.has(step)}
          onClick={() => toggle(step)}
        >
          {step} <span class="dim">{lines}</span>
        </button>
      ))}
    </div>
  );
}

/** Index of the line to show; undefined while none is found. */
function findShown({ hits, count }: LogSearch, hit: number): number | undefined {
  return count.value > hit ? hits[hit] : undefined;
}

interface LogSearchFormProps {
  readonly search: LogSearch;
  readonly hit: number;
  readonly onHit: (hit: number) => void;
}

function LogSearchForm({ search, hit, onHit }: LogSearchFormProps) {
  const goOn = (event: Event) => {
    event.preventDefault();
    onHit(hit + 1);
  };
  const type = ({ currentTarget }: { readonly currentTarget: HTMLInputElement }) => {
    search.begin(currentTarget.value);
    onHit(0);
  };
  const hits = search.count.value;
  const found = hits === 0 ? "no match" : `${hit + 1} of ${hits.toLocaleString("en")}`;
  return (
    <form class="log-search" role="search" onSubmit={goOn}>
      <input type="search" aria-label="Search the log" placeholder="Search" onInput={type} />
      <span class="soft" role="status">
        {search.wanted.value !== "" && found}
      </span>
      {hits > 1 && (
        <>
          <Button look="quiet" label="Previous match" onClick={() => onHit(hit - 1)}>
            <span class="turned">
              <Icon name="down" />
            </span>
          </Button>
          <Button look="quiet" label="Next match" onClick={() => onHit(hit + 1)}>
            <Icon name="down" />
          </Button>
        </>
      )}
    </form>
  );
}

function FollowButton({ isFollowing }: { readonly isFollowing: Signal<boolean> }) {
  return (
    <Button look="quiet" onClick={() => (isFollowing.value = !isFollowing.value)}>
      <Icon name={isFollowing.value ? "check" : "down"} />
      {isFollowing.value ? "Following" : "Follow"}
    </Button>
  );
}

/** As the style sheet's lines. */
const linePx = 24;
const viewLines = 20;
const margin = 20;

interface ShownLines {
  readonly all: readonly LogLine[];
  readonly count: number;
}

interface LogViewProps {
  readonly lines: ShownLines;
  readonly isFollowing: Signal<boolean>;
  /** Index of the line that was searched for. */
  readonly shown: number | undefined;
  /** The text that was searched for, in lower case. */
  readonly wanted: string;
}

/** The lines in view of a log of any length. */
function LogView({ lines, isFollowing, shown, wanted }: LogViewProps) {
  const view = useRef<HTMLDivElement>(null);
  const top = useSignal(0);
  const { count } = lines;
  useScrolling(view, { count, shown, isFollowing: isFollowing.value });
  const scroll = ({ currentTarget }: { readonly currentTarget: HTMLElement }) => {
    const { scrollTop, scrollHeight, clientHeight } = currentTarget;
    const isAtEnd = scrollHeight - scrollTop - clientHeight < linePx;
    // Somebody who goes back to read is not taken to the end by the next line.
    if (scrollTop < top.peek() && !isAtEnd) isFollowing.value = false;
    top.value = scrollTop;
  };
  return (
    <div
      ref={view}
      class="log"
      tabIndex={0}
      role="log"
      aria-label="Terminal output"
      aria-live="off"
      onScroll={scroll}
      onWheel={({ deltaY }) => deltaY < 0 && (isFollowing.value = false)}
    >
      <Lines lines={lines} top={top.value} shown={shown} wanted={wanted} />
    </div>
  );
}

interface Scrolling {
  readonly count: number;
  readonly shown: number | undefined;
  readonly isFollowing: boolean;
}

/** Scrolls to the end while it follows, to what was searched for, and to the address's line. */
function useScrolling(view: RefObject<HTMLDivElement | null>, to: Scrolling): void {
  const { count, shown, isFollowing } = to;
  const showLine = (index: number | undefined) => {
    if (index === undefined) return;
    const { factor } = scaleLines(count);
    view.current?.scrollTo({ top: ((index - viewLines / 2) * linePx) / factor });
  };
  useEffect(() => {
    if (isFollowing) view.current?.scrollTo({ top: count * linePx });
  }, [count, isFollowing]);
  useEffect(() => showLine(shown), [shown]);
  const marked = findMarkedLine();
  const isThere = marked !== undefined && marked <= count;
  useEffect(() => showLine(isThere ? marked - 1 : undefined), [isThere]);
}

function scaleLines(count: number) {
  return scaleScroll(count * linePx, viewLines * linePx);
}

interface LinesProps extends Pick<LogViewProps, "lines" | "shown" | "wanted"> {
  /** Pixels above the view. */
  readonly top: number;
}

function Lines({ lines: { all, count }, top, shown, wanted }: LinesProps) {
  const { heightPx, factor } = scaleLines(count);
  const passed = top * factor;
  const start = Math.max(0, Math.floor(passed / linePx) - margin);
  const end = Math.min(count, start + viewLines + 2 * margin);
  return (
    <div class="log-rows" style={{ height: `${heightPx}px` }}>
      {all.slice(start, end).map((line, index) => (
        <Line
          key={line.seq}
          line={line}
          top={(start + index) * linePx - passed + top}
          isHit={start + index === shown}
          isMatch={wanted !== "" && line.text.toLowerCase().includes(wanted)}
        />
      ))}
    </div>
  );
}

interface LineProps {
  readonly line: LogLine;
  readonly top: number;
  readonly isHit: boolean;
  readonly isMatch: boolean;
}

function Line({ line, top, isHit, isMatch }: LineProps) {
  const { seq, text, at } = line;
  const looks = ["log-line", chooseTone(line)];
  if (isMatch) looks.push("is-match");
  if (isHit) looks.push("is-hit");
  if (findMarkedLine() === seq) looks.push("is-marked");
  const step = readStep(line);
  const rest = step === undefined ? text : text.slice(step.length + 3);
  return (
    <div
      class={looks.join(" ")}
      style={{ top: `${top}px` }}
      title={formatExactTime(Date.parse(at))}
    >
      <a href={`#L${seq}`} aria-label={`Line ${seq}`}>
        {seq}
      </a>
      <time class="phone-off" dateTime={at}>
        {formatClock(Date.parse(at)).slice(0, 8)}
      </time>
      <span>
        {step !== undefined && <span class="log-step">[{step}] </span>}
        {parseAnsi(rest).map((part, index) => (
          <span key={index} class={part.looks.join(" ")}>
            {part.text}
          </span>
        ))}
      </span>
    </div>
  );
}

/** What went wrong is red, and what is only said on the side of errors is not. */
function chooseTone({ text, stream }: LogLine): string {
  if (stream !== "stderr") return /\bWarning: /.test(text) ? "is-warning" : "";
  return /\b(warning|taken over|takes over)\b/i.test(text) ? "is-warning" : "is-failure";
}

/** The number of the line that the address names. */
function findMarkedLine(): number | undefined {
  const [, digits] = /^#L(\d{1,9})$/.exec(location.hash) ?? [];
  return digits === undefined ? undefined : Number(digits);
}

/** Lines between two frames: a log can have a million. */
const linesInFrame = 20_000;

/** Finds the lines of a log that contain a text, in any case, also in those that come later. */
class LogSearch {
  /** Indexes of lines, rising; `count` says when there are more. */
  readonly hits: number[] = [];
  readonly count = signal(0);
  readonly #log: JobLog;
  /** In lower case; empty while nothing is searched for. */
  readonly wanted = signal("");
  #next = 0;
  #frame = 0;

  constructor(log: JobLog) {
    this.#log = log;
  }

  /** Looks for another text, from the first line on. */
  begin(text: string): void {
    this.wanted.value = text.toLowerCase();
    this.#next = 0;
    this.hits.length = 0;
    this.count.value = 0;
    this.goOn();
  }

  /** Looks through the lines that it has not seen. */
  goOn(): void {
    const wanted = this.wanted.peek();
    if (wanted === "" || this.#frame !== 0) return;
    const { lines } = this.#log;
    const end = Math.min(this.#next + linesInFrame, lines.length);
    for (; this.#next < end; this.#next++) {
      if (lines[this.#next]?.text.toLowerCase().includes(wanted)) this.hits.push(this.#next);
    }
    this.count.value = this.hits.length;
    if (end === lines.length) return;
    this.#frame = requestAnimationFrame(() => {
      this.#frame = 0;
      this.goOn();
    });
  }
}

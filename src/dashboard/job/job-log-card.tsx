import { type Signal, signal, useComputed, useSignal } from "@preact/signals";
import type { RefObject } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { JobLog } from "./job-log.ts";
import { parseAnsi } from "./parse-ansi.ts";
import { scaleScroll } from "./scale-scroll.ts";
import type { LogLine } from "../../contract/jobs/log.ts";
import { Button, Icon } from "../shared/button.tsx";
import { MaybeError } from "../shared/notice.tsx";
import { useScrollFromAddress } from "../shared/scroll-from-address.ts";

/** The log of a job: live, to be searched, with a link to each line. */
export function JobLogCard({ jobId }: { readonly jobId: string }) {
  const log = useMemo(() => new JobLog(), [jobId]);
  const search = useMemo(() => new LogSearch(log), [log]);
  const card = useScrollFromAddress("log");
  const hit = useSignal(0);
  const isFollowing = useSignal(!location.hash.startsWith("#L"));
  useEffect(() => log.follow(jobId), [jobId]);
  useEffect(() => log.count.subscribe(() => search.goOn()), [log]);
  const lines = useComputed(() => log.count.value.toLocaleString("en"));
  const goTo = (index: number) => {
    isFollowing.value = false;
    hit.value = index % Math.max(1, search.hits.length);
  };
  return (
    <section ref={card} id="log" class="card c12">
      <header>
        <h2>Log</h2>
        <span class="dim">{lines} lines</span>
        <span class="grow" />
        <LogSearchForm search={search} hit={hit.value} onHit={goTo} />
        {!log.isComplete.value && <FollowButton isFollowing={isFollowing} />}
        <a class="button" href={`/v1/jobs/${jobId}/logs?follow=false`} download={`${jobId}.log`}>
          Download
        </a>
      </header>
      <MaybeError error={log.error.value} />
      <LogView log={log} isFollowing={isFollowing} shown={findShown(search, hit.value)} />
    </section>
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
  const isEmpty = useSignal(true);
  const goOn = (event: Event) => {
    event.preventDefault();
    onHit(hit + 1);
  };
  const type = ({ currentTarget }: { readonly currentTarget: HTMLInputElement }) => {
    isEmpty.value = currentTarget.value === "";
    search.begin(currentTarget.value);
    onHit(0);
  };
  const hits = search.count.value;
  const found = hits === 0 ? "no match" : `${hit + 1} of ${hits.toLocaleString("en")}`;
  return (
    <form class="log-search" role="search" onSubmit={goOn}>
      <input type="search" aria-label="Search the log" placeholder="Search" onInput={type} />
      <span class="soft" role="status">
        {!isEmpty.value && found}
      </span>
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
const linePx = 20;
const viewLines = 21;
const margin = 20;

interface LogViewProps {
  readonly log: JobLog;
  readonly isFollowing: Signal<boolean>;
  /** Index of the line that was searched for. */
  readonly shown: number | undefined;
}

/** The lines in view of a log of any length. */
function LogView({ log, isFollowing, shown }: LogViewProps) {
  const view = useRef<HTMLDivElement>(null);
  const top = useSignal(0);
  const count = log.count.value;
  useScrolling(view, { count, shown, isFollowing: isFollowing.value });
  return (
    <div
      ref={view}
      class="log"
      tabIndex={0}
      role="log"
      aria-label="Terminal output"
      aria-live="off"
      onScroll={({ currentTarget }) => (top.value = currentTarget.scrollTop)}
      onWheel={() => (isFollowing.value = false)}
    >
      <Lines lines={log.lines} top={top.value} count={count} shown={shown} />
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

interface LinesProps {
  readonly lines: readonly LogLine[];
  /** Pixels above the view. */
  readonly top: number;
  readonly count: number;
  readonly shown: number | undefined;
}

function Lines({ lines, top, count, shown }: LinesProps) {
  const { heightPx, factor } = scaleLines(count);
  const passed = top * factor;
  const start = Math.max(0, Math.floor(passed / linePx) - margin);
  const end = Math.min(count, start + viewLines + 2 * margin);
  return (
    <div class="log-rows" style={{ height: `${heightPx}px` }}>
      {lines.slice(start, end).map((line, index) => (
        <Line
          key={line.seq}
          line={line}
          top={(start + index) * linePx - passed + top}
          isHit={start + index === shown}
        />
      ))}
    </div>
  );
}

interface LineProps {
  readonly line: LogLine;
  readonly top: number;
  readonly isHit: boolean;
}

function Line({ line: { seq, text, stream, at }, top, isHit }: LineProps) {
  const looks = ["log-line", `is-${stream}`];
  if (isHit) looks.push("is-hit");
  if (findMarkedLine() === seq) looks.push("is-marked");
  return (
    <div class={looks.join(" ")} style={{ top: `${top}px` }} title={at}>
      <a href={`#L${seq}`} aria-label={`Line ${seq}`}>
        {seq}
      </a>
      <span>
        {parseAnsi(text).map((part, index) => (
          <span key={index} class={part.looks.join(" ")}>
            {part.text}
          </span>
        ))}
      </span>
    </div>
  );
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
  #wanted = "";
  #next = 0;
  #frame = 0;

  constructor(log: JobLog) {
    this.#log = log;
  }

  /** Looks for another text, from the first line on. */
  begin(text: string): void {
    this.#wanted = text.toLowerCase();
    this.#next = 0;
    this.hits.length = 0;
    this.count.value = 0;
    this.goOn();
  }

  /** Looks through the lines that it has not seen. */
  goOn(): void {
    if (this.#wanted === "" || this.#frame !== 0) return;
    const { lines } = this.#log;
    const end = Math.min(this.#next + linesInFrame, lines.length);
    for (; this.#next < end; this.#next++) {
      if (lines[this.#next]?.text.toLowerCase().includes(this.#wanted)) this.hits.push(this.#next);
    }
    this.count.value = this.hits.length;
    if (end === lines.length) return;
    this.#frame = requestAnimationFrame(() => {
      this.#frame = 0;
      this.goOn();
    });
  }
}

import { type Signal, useSignal } from "@preact/signals";
import type { RefObject } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { LogLine } from "../../contract/jobs/log.ts";
import type { JobLog } from "./job-log.ts";
import { parseAnsi } from "./parse-ansi.ts";
import { scaleScroll } from "./scale-scroll.ts";

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
export function LogView({ log, isFollowing, shown }: LogViewProps) {
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

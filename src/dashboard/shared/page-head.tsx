import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import { serviceNow } from "./clock.ts";
import { formatAge, formatDuration, formatExactTime } from "./format.ts";

interface PageHeadProps {
  readonly title: string;
  /** Beside the title, such as whether the page is live. */
  readonly sign?: ComponentChildren;
  /** What can be done on the page. */
  readonly children?: ComponentChildren;
}

/** Title of a page, of its tab too, and what can be done on it. */
export function PageHead({ title, sign, children }: PageHeadProps) {
  useTitle(title);
  return (
    <div class="top">
      <h1>{title}</h1>
      {sign}
      <span class="grow" />
      {children}
    </div>
  );
}

export function useTitle(title: string): void {
  useEffect(() => {
    document.title = `${title} · Model Optimization`;
  }, [title]);
}

/** How long ago something was, with the exact time on hover. */
export function Age({ at }: { readonly at: string }) {
  const time = Date.parse(at);
  return (
    <time dateTime={at} title={formatExactTime(time)}>
      {formatAge(time, serviceNow.value)}
    </time>
  );
}

/** Time from a moment until another one, or until now. */
export function Duration({ from, to }: { readonly from: string; readonly to: string | null }) {
  const start = Date.parse(from);
  const end = to === null ? serviceNow.value : Date.parse(to);
  return <span title={`Since ${formatExactTime(start)}`}>{formatDuration(end - start)}</span>;
}

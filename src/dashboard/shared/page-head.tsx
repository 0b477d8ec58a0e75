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

/** How what a page is of stands, in front of its tab's title. */
export const tabSigns = { calm: "✓ ", warn: "⚠ ", bad: "✗ ", off: "", wait: "… " } as const;

/** The icon of the tab in the colour of how it stands; undefined for the usual one. */
export function useTabIcon(tone: keyof typeof tabColours | undefined): void {
  useEffect(() => {
    const icon = document.querySelector<HTMLLinkElement>('link[rel="icon"]');
    if (icon === null || tone === undefined) return undefined;
    const usual = icon.href;
    icon.href = `data:image/svg+xml,${encodeURIComponent(drawTabIcon(tabColours[tone]))}`;
    return () => {
      icon.href = usual;
    };
  }, [tone]);
}

/** They are seen on light and on dark tabs. */
const tabColours = {
  work: "#2c57d4",
  wait: "#848d9b",
  off: "#848d9b",
  calm: "#1d8a5b",
  warn: "#c77f0a",
  bad: "#d63a3f",
} as const;

function drawTabIcon(colour: string): string {
  const circle = `<circle cx="10" cy="10" r="9" fill="${colour}"/>`;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 20 20">${circle}</svg>`;
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

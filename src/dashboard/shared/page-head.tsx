import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";

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

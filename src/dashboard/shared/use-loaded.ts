import { useSignal } from "@preact/signals";
import type { RefObject } from "preact";
import { useEffect } from "preact/hooks";

interface Loaded<T> {
  readonly value: T | undefined;
  readonly error: unknown;
  readonly reload: () => Promise<void>;
}

/** Loads something when a page opens; what was loaded stays while it is loaded again. */
export function useLoaded<T>(load: () => Promise<T>): Loaded<T> {
  const value = useSignal<T | undefined>(undefined);
  const error = useSignal<unknown>(undefined);
  const reload = async () => {
    try {
      value.value = await load();
      error.value = undefined;
    } catch (thrown) {
      error.value = thrown;
    }
  };
  useEffect(() => void reload(), []);
  return { value: value.value, error: error.value, reload };
}

interface VisibleRows {
  /** First row to draw. */
  readonly start: number;
  /** Row behind the last one. */
  readonly end: number;
}

/** Rows that are drawn above and below those in view. */
const margin = 8;

/** Which rows of equal height are in the window, so that a long list draws those alone. */
export function useWindowRows(
  list: RefObject<HTMLElement | null>,
  { count, rowPx }: { readonly count: number; readonly rowPx: number },
): VisibleRows {
  const visible = useSignal<VisibleRows>({ start: 0, end: Math.min(count, 50) });
  const measure = () => {
    const top = -(list.current?.getBoundingClientRect().top ?? 0);
    const start = Math.max(0, Math.floor(top / rowPx) - margin);
    const end = Math.ceil((top + window.innerHeight) / rowPx) + margin;
    const shown = visible.peek();
    if (shown.start !== start || shown.end !== end) visible.value = { start, end };
  };
  useEffect(() => {
    measure();
    addEventListener("scroll", measure, { passive: true });
    addEventListener("resize", measure);
    return () => {
      removeEventListener("scroll", measure);
      removeEventListener("resize", measure);
    };
  }, [count]);
  return { start: Math.min(visible.value.start, count), end: Math.min(visible.value.end, count) };
}

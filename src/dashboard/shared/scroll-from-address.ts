import { useEffect, useRef } from "preact/hooks";

const inputs = ["wheel", "touchstart", "pointerdown", "keydown"] as const;

/**
 * Scrolls to an element that the address names by its id, and again whenever what is loaded above
 * moves it, until the reader does something.
 */
export function useScrollFromAddress(id: string) {
  const element = useRef<HTMLElement>(null);
  useEffect(() => {
    if (location.hash.split("=", 1)[0] !== `#${id}`) return;
    const observer = new ResizeObserver(() => element.current?.scrollIntoView());
    const stop = () => observer.disconnect();
    observer.observe(document.body);
    for (const input of inputs) addEventListener(input, stop, { once: true });
    return () => {
      stop();
      for (const input of inputs) removeEventListener(input, stop);
    };
  }, []);
  return element;
}

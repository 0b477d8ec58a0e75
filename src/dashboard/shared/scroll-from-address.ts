import { useEffect, useRef } from "preact/hooks";

/** Shows an element that the address names by its id. */
export function useScrollFromAddress(id: string) {
  const element = useRef<HTMLElement>(null);
  useEffect(() => {
    // The browser looks for the address's part before the job is there.
    if (location.hash === `#${id}`) element.current?.scrollIntoView();
  }, []);
  return element;
}

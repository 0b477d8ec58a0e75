import type { RefObject } from "preact";
import { useEffect, useRef } from "preact/hooks";

const question = "Leave this page? What you entered is lost.";

/** Address of the page whose form has input that is not sent. */
let unsent: string | undefined;

/** Asks before a page is left whose form has input. @returns whether it may be left */
export function mayLeave(): boolean {
  return unsent === undefined || confirm(question);
}

/** Of a form: once something was entered, links, the browser's buttons and the tab's end ask. */
export function useLeaveQuestion(): RefObject<HTMLFormElement | null> {
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => {
    const address = location.href;
    const keep = () => (unsent = address);
    for (const type of ["input", "change", "drop"]) form.current?.addEventListener(type, keep);
    return () => (unsent = undefined);
  }, []);
  return form;
}

/** Begins to ask. The router must not be there yet: listeners of a window run in their order. */
export function watchLeaving(): void {
  addEventListener("beforeunload", (event) => unsent === undefined || event.preventDefault());
  addEventListener("click", stopUnlessLeft, { capture: true });
  addEventListener("popstate", (event) => {
    const address = unsent;
    if (mayLeave()) return;
    event.stopImmediatePropagation();
    history.pushState(undefined, "", address);
  });
}

function stopUnlessLeft(event: MouseEvent): void {
  const link = event.target instanceof Element ? event.target.closest("a[href]") : null;
  if (!(link instanceof HTMLAnchorElement) || event.ctrlKey || event.metaKey) return;
  const isHere = link.getAttribute("href")?.startsWith("#") ?? false;
  if (isHere || link.target !== "" || link.hasAttribute("download") || mayLeave()) return;
  event.preventDefault();
  event.stopImmediatePropagation();
}

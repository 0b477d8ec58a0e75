import type { ComponentChildren } from "preact";
import { useLocation } from "preact-iso";
import { useEffect, useRef } from "preact/hooks";

interface MenuProps {
  /** What opens it. */
  readonly summary: ComponentChildren;
  readonly look: string;
  readonly children: ComponentChildren;
}

/** A menu, which Esc closes, a press elsewhere, and another page. */
export function Menu({ summary, look, children }: MenuProps) {
  const menu = useRef<HTMLDetailsElement>(null);
  const { url } = useLocation();
  const close = () => menu.current?.removeAttribute("open");
  useEffect(close, [url]);
  useEffect(() => watchClosing(menu.current, close), []);
  return (
    <details ref={menu} class={look}>
      <summary>{summary}</summary>
      {children}
    </details>
  );
}

function watchClosing(menu: HTMLDetailsElement | null, close: () => void): () => void {
  const press = ({ target }: Event) => {
    if (target instanceof Node && menu?.contains(target) !== true) close();
  };
  const type = ({ key }: KeyboardEvent) => {
    if (key !== "Escape" || menu?.open !== true) return;
    close();
    menu.querySelector("summary")?.focus();
  };
  addEventListener("pointerdown", press);
  addEventListener("keydown", type);
  return () => {
    removeEventListener("pointerdown", press);
    removeEventListener("keydown", type);
  };
}

import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useRef } from "preact/hooks";

interface ButtonProps {
  readonly onClick: () => unknown;
  /** `main` is what the page is for, `quiet` one of several. */
  readonly look?: "main" | "quiet" | "danger" | "quiet danger" | "main danger";
  readonly title?: string;
  /** In place of its content, for screen readers. */
  readonly label?: string;
  readonly children: ComponentChildren;
}

export function Button({ onClick, look, title, label, children }: ButtonProps) {
  return (
    <button type="button" class={look} title={title} aria-label={label} onClick={() => onClick()}>
      {children}
    </button>
  );
}

const ring = "M14 8A6 6 0 1 1 2 8a6 6 0 0 1 12 0";

const paths = {
  wait: ring,
  work: "M8 2a6 6 0 1 1-6 6",
  good: `${ring}M5.4 8.2l1.8 1.8 3.4-3.8`,
  bad: "M5.5 2h5L14 5.5v5L10.5 14h-5L2 10.5v-5zM6 6l4 4m0-4-4 4",
  warn: "M8 2.2 14.2 13H1.8zM8 6.4v3m0 1.9v.1",
  stop: `${ring}M4 12l8-8`,
  check: "m3 8.5 3.2 3.2L13 4.6",
  same: "M4 6.5h8M4 9.5h8",
  better: "m4 8 4-4 4 4m-8 4.5 4-4 4 4",
  worse: "m4 3.5 4 4 4-4m-8 4.5 4 4 4-4",
  down: "M8 3v9.5M4 9l4 3.7L12 9",
  search: "M11.5 7a4.5 4.5 0 1 1-9 0 4.5 4.5 0 0 1 9 0M10.5 10.5l3 3",
  close: "m4.5 4.5 7 7m0-7-7 7",
  plus: "M8 3v10M3 8h10",
  jobs: "M2.5 4h11M2.5 8h11M2.5 12h7",
  batches: "M2.5 2.5h4.5v4.5H2.5zM9 2.5h4.5v4.5H9zM2.5 9h4.5v4.5H2.5zM9 9h4.5v4.5H9z",
  targets:
    "M4.5 4.5h7v7h-7zM6.5 2v2.5m3-2.5v2.5m-3 7V14m3-2.5V14M2 6.5h2.5M2 9.5h2.5m7-3H14m-2.5 3H14",
  tokens: "M8.5 8a3 3 0 1 1-6 0 3 3 0 0 1 6 0M8.5 8H14m-2 0v2.5",
  webhooks: "M2.5 3.5h11v7H7L4 13.5v-3H2.5zM5.5 7h.1m2.4 0h.1m2.4 0h.1",
  audit: "M4 2.5h8v11H4zM6.5 6h3m-3 3h3",
  models: "M8 2 13.5 5v6L8 14 2.5 11V5zM2.5 5 8 8l5.5-3M8 8v6",
  suites: "M2 12.5 6 8l3 2.5 5-6.5",
  health: "M1.5 8.5h3l1.5-4 3 7.5 1.7-3.5h3.8",
  copy: "M5.5 5.5h8v8h-8zM3 10.5h-.5v-8h8V3",
  again: "M13 8a5 5 0 1 1-1.6-3.7L13 5.8M13 2.5v3.3H9.7",
  person: "M10.5 5.5a2.5 2.5 0 1 1-5 0 2.5 2.5 0 0 1 5 0M3 13.5c.6-2.6 2.6-4 5-4s4.4 1.4 5 4",
} as const;

export type IconName = keyof typeof paths;

/** A sign that repeats what words beside it say. */
export function Icon({ name }: { readonly name: IconName }) {
  return (
    <svg class={`i i-${name}`} viewBox="0 0 16 16" aria-hidden="true">
      <path d={paths[name]} />
    </svg>
  );
}

interface CommandProps {
  readonly text: string;
  /** What it is, for screen readers. */
  readonly label: string;
}

const shownMs = 2000;

/** A text to take elsewhere, such as a command, with a button that copies it. */
export function Command({ text, label }: CommandProps) {
  const shown = useRef<HTMLPreElement>(null);
  const isCopied = useSignal(false);
  const copy = async () => {
    if (!(await copyText(text))) {
      // The text is ready for the person's own keys at least.
      if (shown.current !== null) getSelection()?.selectAllChildren(shown.current);
      // oxlint-disable-next-line typescript/no-deprecated -- the only way without TLS
      if (!document.execCommand("copy")) return;
    }
    isCopied.value = true;
    setTimeout(() => (isCopied.value = false), shownMs);
  };
  return (
    <div class="command">
      <pre ref={shown} tabIndex={0} role="region" aria-label={label}>
        {text}
      </pre>
      <button type="button" onClick={() => void copy()}>
        <Icon name={isCopied.value ? "check" : "copy"} />
        <span aria-live="polite">{isCopied.value ? "Copied" : "Copy"}</span>
      </button>
    </div>
  );
}

/** @returns false where the browser does not allow it, and at addresses without TLS */
async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

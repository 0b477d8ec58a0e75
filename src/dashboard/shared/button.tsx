import type { ComponentChildren } from "preact";

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

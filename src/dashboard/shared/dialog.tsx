import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";

interface DialogProps {
  readonly title: string;
  /** `palette`: its title is for screen readers alone. */
  readonly look?: "palette";
  readonly onClose: () => void;
  readonly children: ComponentChildren;
}

/** A dialog over the page, which the browser keeps the keyboard in. */
export function Dialog({ title, look, onClose, children }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const titleId = useId();
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} class={`dialog ${look ?? ""}`} aria-labelledby={titleId} onClose={onClose}>
      <h2 id={titleId}>{title}</h2>
      {children}
    </dialog>
  );
}

import { signal, useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import { ErrorNotice } from "./notice.tsx";
import { isTyping } from "./palette.ts";

interface DialogProps {
  readonly title: string;
  /** `palette`: only screen readers read its title. */
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

interface DialogFormEndProps {
  /** What the button says that sends the form. */
  readonly action: string;
  readonly onCancel: () => void;
}

export function DialogFormEnd({ action, onCancel }: DialogFormEndProps) {
  return (
    <div class="dialog-end">
      <button type="button" onClick={onCancel}>
        Cancel
      </button>
      <button class="main">{action}</button>
    </div>
  );
}

interface DialogDoneEndProps {
  readonly done: string;
  readonly onDone: () => void;
}

/** The end of a dialog that only shows something. */
export function DialogDoneEnd({ done, onDone }: DialogDoneEndProps) {
  return (
    <div class="dialog-end">
      <button type="button" class="main" onClick={onDone}>
        {done}
      </button>
    </div>
  );
}

interface RemovalDialogProps {
  readonly title: string;
  /** What its two buttons say. */
  readonly keep: string;
  readonly remove: string;
  readonly onKeep: () => void;
  /** Where it fails, the dialog stays and says why. */
  readonly onRemove: () => unknown;
  /** What is taken away. */
  readonly children: ComponentChildren;
}

/** Asks before something is taken away for good. */
export function RemovalDialog(props: RemovalDialogProps) {
  const { title, keep, remove, onKeep, onRemove, children } = props;
  const failure = useSignal<unknown>(undefined);
  const press = async () => {
    failure.value = undefined;
    try {
      await onRemove();
    } catch (error) {
      failure.value = error;
    }
  };
  return (
    <Dialog title={title} onClose={onKeep}>
      {/* Shown also when the service is back: nothing was removed. */}
      {failure.value !== undefined && <ErrorNotice error={failure.value} />}
      {children}
      <div class="dialog-end">
        <button type="button" onClick={onKeep}>
          {keep}
        </button>
        <button type="button" class="main danger" onClick={() => void press()}>
          {remove}
        </button>
      </div>
    </Dialog>
  );
}

/** Which of the dialogs that every page has is open. */
export const openDialog = signal<"commands" | "keys" | undefined>(undefined);

/** Opens them by their keys. @returns a function that ends it */
export function watchDialogKeys(): () => void {
  const listen = (event: KeyboardEvent) => {
    const dialog = findDialog(event);
    // Another dialog, such as one whose session has ended, stays on top.
    if (dialog === undefined || document.querySelector("dialog[open]") !== null) return;
    event.preventDefault();
    openDialog.value = dialog;
  };
  addEventListener("keydown", listen);
  return () => removeEventListener("keydown", listen);
}

function findDialog(event: KeyboardEvent) {
  const isCommand = event.ctrlKey || event.metaKey;
  if (isCommand && event.key.toLowerCase() === "k") return "commands";
  return event.key === "?" && !isCommand && !isTyping(event) ? "keys" : undefined;
}

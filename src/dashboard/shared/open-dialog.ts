import { signal } from "@preact/signals";
import { isTyping } from "./is-typing.ts";

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

import { ErrorBoundary, lazy } from "preact-iso";
import { useEffect } from "preact/hooks";
import { openDialog, watchDialogKeys } from "../shared/dialog.tsx";

const CommandPalette = lazy(async () => (await import("./command-palette.tsx")).CommandPalette);
const KeyHelp = lazy(async () => (await import("./key-help.tsx")).KeyHelp);

/** Dialogs that every page has, each loaded when it is first opened. */
export function SharedDialogs() {
  useEffect(watchDialogKeys, []);
  const close = () => (openDialog.value = undefined);
  return (
    <ErrorBoundary>
      {openDialog.value === "commands" && <CommandPalette onClose={close} />}
      {openDialog.value === "keys" && <KeyHelp onClose={close} />}
    </ErrorBoundary>
  );
}

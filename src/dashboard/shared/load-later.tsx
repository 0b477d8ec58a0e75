import type { ComponentType } from "preact";
import { lazy } from "preact-iso";
import { useEffect } from "preact/hooks";
import { onReconnect } from "./connection-state.ts";
import { Dialog, DialogDoneEnd } from "./dialog.tsx";
import { ErrorNotice } from "./notice.tsx";
import { useTitle } from "./page-head.tsx";

/** A page whose code is loaded when it is first opened. Where that fails, it says so. */
export function loadPage(load: () => Promise<ComponentType>) {
  return lazy(() => load().catch(() => UnloadedPage));
}

/** A dialog whose code is loaded when it is first opened. Where that fails, it says so. */
export function loadDialog<Props extends { readonly onClose: () => void }>(
  load: () => Promise<ComponentType<Props>>,
): ComponentType<Props> {
  return lazy<ComponentType<Props>>(() => load().catch(() => UnloadedDialog));
}

const reason = "The service is away, or has a new version since this page was opened.";

// A browser may keep the failure, and a new version has other files: only a whole page helps.
const reload = () => location.reload();

function UnloadedPage() {
  useTitle("Not loaded");
  useEffect(() => onReconnect(reload), []);
  return (
    <main id="main">
      <div class="empty">
        <h1>This page could not be loaded</h1>
        <p class="soft">{reason}</p>
        <button type="button" onClick={reload}>
          Load again
        </button>
      </div>
    </main>
  );
}

function UnloadedDialog({ onClose }: { readonly onClose: () => void }) {
  return (
    <Dialog title="This could not be loaded" onClose={onClose}>
      <p>{reason}</p>
      <DialogDoneEnd done="Load again" onDone={reload} />
    </Dialog>
  );
}

/** In place of a part of a page whose code was not loaded. */
export function UnloadedNotice() {
  return <ErrorNotice error={reason} retry={reload} />;
}

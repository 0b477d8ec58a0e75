import { ErrorBoundary, LocationProvider, Route, Router } from "preact-iso";
import { exec } from "preact-iso/router";
import { useEffect } from "preact/hooks";
import { pagePaths } from "../contract/page-addresses.ts";
import { JobsPage } from "./jobs/jobs-page.tsx";
import { self } from "./session/session-state.ts";
import { access } from "./shared/connection-state.ts";
import { openDialog, watchDialogKeys } from "./shared/dialog.tsx";
import { FailureNotice } from "./shared/failure-notice.tsx";
import { loadDialog, loadPage } from "./shared/load-later.tsx";
import { useTitle } from "./shared/page-head.tsx";
import { Sidebar } from "./shell/sidebar.tsx";
import { hasNoRole, NoRolePage, SessionEnded } from "./sign-in/no-role-page.tsx";
import { SignInPage } from "./sign-in/sign-in-page.tsx";

/** By the pattern of their addresses. All but the first one are loaded when they are opened. */
const pages = {
  "/": JobsPage,
  "/jobs": JobsPage,
  [pagePaths.job]: loadPage(async () => (await import("./job/job-page.tsx")).JobPage),
  [pagePaths.changes]: loadPage(
    async () => (await import("./changes/changes-page.tsx")).ChangesPage,
  ),
  "/compare": loadPage(async () => (await import("./compare/compare-page.tsx")).ComparePage),
  "/batches": loadPage(async () => (await import("./batches/batches-page.tsx")).BatchesPage),
  [pagePaths.batch]: loadPage(async () => (await import("./batch/batch-page.tsx")).BatchPage),
  "/suites": loadPage(async () => (await import("./suite/suites-page.tsx")).SuitesPage),
  [pagePaths.suite]: loadPage(async () => (await import("./suite/suite-page.tsx")).SuitePage),
  "/health": loadPage(async () => (await import("./health/health-page.tsx")).HealthPage),
  "/new": loadPage(async () => (await import("./new-job/new-job-page.tsx")).NewJobPage),
  "/new-batch": loadPage(async () => (await import("./new-batch/new-batch-page.tsx")).NewBatchPage),
  "/models": loadPage(async () => (await import("./models/models-page.tsx")).ModelsPage),
  "/models/:name": loadPage(async () => (await import("./models/model-page.tsx")).ModelPage),
  "/targets": loadPage(async () => (await import("./targets/targets-page.tsx")).TargetsPage),
  "/terms": loadPage(async () => (await import("./terms/terms-page.tsx")).TermsPage),
  "/audit": loadPage(async () => (await import("./audit/audit-page.tsx")).AuditPage),
  "/tokens": loadPage(async () => (await import("./tokens/tokens-page.tsx")).TokensPage),
  "/webhooks": loadPage(async () => (await import("./webhook/webhooks-page.tsx")).WebhooksPage),
  "/project": loadPage(async () => (await import("./project/project-page.tsx")).ProjectPage),
  "/account": loadPage(async () => (await import("./account/account-page.tsx")).AccountPage),
};

const CommandPalette = loadDialog(
  async () => (await import("./commands/command-palette.tsx")).CommandPalette,
);
const KeyHelp = loadDialog(async () => (await import("./commands/key-help.tsx")).KeyHelp);

/** All paths but those of the REST interface and of single sign-on. */
const pageScope = /^\/(?!(v1|auth)(\/|$))/;

export function App() {
  if (access.value === "unknown") return undefined;
  if (self.value === undefined) return <SignInPage />;
  if (hasNoRole(self.value)) return <NoRolePage />;
  return (
    <LocationProvider scope={pageScope}>
      <a class="skip" href="#main">
        Skip to content
      </a>
      <Sidebar />
      <ErrorBoundary>
        <Router>
          {Object.entries(pages).map(([path, page]) => (
            <Route key={path} path={path} component={page} />
          ))}
          <Route default component={NotFoundPage} />
        </Router>
      </ErrorBoundary>
      <FailureNotice />
      <SharedDialogs />
      {access.value === "out" && <SessionEnded />}
    </LocationProvider>
  );
}

/** Loads what the page at an address needs, while it is asked who is signed in. */
export function preloadPage(address: string): void {
  for (const [path, page] of Object.entries(pages)) {
    const match: unknown = exec(address, path);
    if ("preload" in page && match !== undefined) void page.preload();
  }
}

function NotFoundPage() {
  useTitle("Page not found");
  return (
    <main id="main">
      <div class="empty">
        <h1>Page not found</h1>
        <p class="soft">Nothing has this address. It may have been deleted, or mistyped.</p>
        <a class="button" href="/jobs">
          Open the jobs
        </a>
      </div>
    </main>
  );
}

/** Dialogs that every page has, each loaded when it is first opened. */
function SharedDialogs() {
  useEffect(watchDialogKeys, []);
  const close = () => (openDialog.value = undefined);
  return (
    <ErrorBoundary>
      {openDialog.value === "commands" && <CommandPalette onClose={close} />}
      {openDialog.value === "keys" && <KeyHelp onClose={close} />}
    </ErrorBoundary>
  );
}

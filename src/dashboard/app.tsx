import { ErrorBoundary, LocationProvider, lazy, Route, Router } from "preact-iso";
import { useEffect } from "preact/hooks";
import { pagePaths } from "../contract/page-addresses.ts";
import { JobsPage } from "./jobs/jobs-page.tsx";
import { access, self } from "./session/session-state.ts";
import { openDialog, watchDialogKeys } from "./shared/dialog.tsx";
import { Sidebar } from "./shell/sidebar.tsx";
import { hasNoRole, NoRolePage, SessionEnded } from "./sign-in/no-role-page.tsx";
import { SignInPage } from "./sign-in/sign-in-page.tsx";

const JobPage = lazy(async () => (await import("./job/job-page.tsx")).JobPage);
const ChangesPage = lazy(async () => (await import("./changes/changes-page.tsx")).ChangesPage);
const AuditPage = lazy(async () => (await import("./audit/audit-page.tsx")).AuditPage);
const TargetsPage = lazy(async () => (await import("./targets/targets-page.tsx")).TargetsPage);
const BatchesPage = lazy(async () => (await import("./batches/batches-page.tsx")).BatchesPage);
const BatchPage = lazy(async () => (await import("./batch/batch-page.tsx")).BatchPage);
const ComparePage = lazy(async () => (await import("./compare/compare-page.tsx")).ComparePage);
const ModelsPage = lazy(async () => (await import("./models/models-page.tsx")).ModelsPage);
const ModelPage = lazy(async () => (await import("./models/model-page.tsx")).ModelPage);
const NewBatchPage = lazy(
  async () => (await import("./new-batch/new-batch-page.tsx")).NewBatchPage,
);
const SuitesPage = lazy(async () => (await import("./suite/suites-page.tsx")).SuitesPage);
const SuitePage = lazy(async () => (await import("./suite/suite-page.tsx")).SuitePage);
const HealthPage = lazy(async () => (await import("./health/health-page.tsx")).HealthPage);
const NewJobPage = lazy(async () => (await import("./new-job/new-job-page.tsx")).NewJobPage);
const TermsPage = lazy(async () => (await import("./terms/terms-page.tsx")).TermsPage);
const TokensPage = lazy(async () => (await import("./tokens/tokens-page.tsx")).TokensPage);
const WebhooksPage = lazy(async () => (await import("./webhook/webhooks-page.tsx")).WebhooksPage);
const ProjectPage = lazy(async () => (await import("./project/project-page.tsx")).ProjectPage);
const AccountPage = lazy(async () => (await import("./account/account-page.tsx")).AccountPage);

const CommandPalette = lazy(
  async () => (await import("./commands/command-palette.tsx")).CommandPalette,
);
const KeyHelp = lazy(async () => (await import("./commands/key-help.tsx")).KeyHelp);

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
          <Route path="/" component={JobsPage} />
          <Route path="/jobs" component={JobsPage} />
          <Route path={pagePaths.job} component={JobPage} />
          <Route path={pagePaths.changes} component={ChangesPage} />
          <Route path="/compare" component={ComparePage} />
          <Route path="/batches" component={BatchesPage} />
          <Route path={pagePaths.batch} component={BatchPage} />
          <Route path="/suites" component={SuitesPage} />
          <Route path={pagePaths.suite} component={SuitePage} />
          <Route path="/health" component={HealthPage} />
          <Route path="/new" component={NewJobPage} />
          <Route path="/new-batch" component={NewBatchPage} />
          <Route path="/models" component={ModelsPage} />
          <Route path="/models/:name" component={ModelPage} />
          <Route path="/targets" component={TargetsPage} />
          <Route path="/terms" component={TermsPage} />
          <Route path="/audit" component={AuditPage} />
          <Route path="/tokens" component={TokensPage} />
          <Route path="/webhooks" component={WebhooksPage} />
          <Route path="/project" component={ProjectPage} />
          <Route path="/account" component={AccountPage} />
          <Route default component={NotFoundPage} />
        </Router>
      </ErrorBoundary>
      <SharedDialogs />
      {access.value === "out" && <SessionEnded />}
    </LocationProvider>
  );
}

function NotFoundPage() {
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

import { useSignal } from "@preact/signals";
import { ErrorBoundary, lazy, useLocation } from "preact-iso";
import type { JobDetail } from "../../contract/jobs/job.ts";
import { isTerminal } from "../../contract/jobs/status.ts";
import { LiveSign } from "../live/live-sign.tsx";
import { service } from "../session/service.ts";
import { mayDo } from "../session/session.ts";
import { artifactAddress } from "../shared/addresses.ts";
import { Button, Icon } from "../shared/button.tsx";
import { shortJobName } from "../shared/format.ts";
import { MaybeError } from "../shared/notice.tsx";
import { useTitle } from "../shared/page-head.tsx";
import { Status } from "../shared/status.tsx";

const SameJobDialog = lazy(async () => (await import("./same-job-dialog.tsx")).SameJobDialog);

export function JobHead({ job }: { readonly job: JobDetail }) {
  useTitle(job.name);
  return (
    <div class="top">
      <div>
        <JobCrumbs job={job} />
        <h1 class="title">
          <span>
            {shortJobName({ ...job, model: job.model.name })} <span class="dim">for</span>{" "}
            {job.target}
          </span>
          <Status status={job.status} />
          {!isTerminal(job.status) && <LiveSign />}
        </h1>
      </div>
      <span class="grow" />
      <JobActions job={job} />
    </div>
  );
}

function JobCrumbs({ job: { batchId } }: { readonly job: JobDetail }) {
  return (
    <nav class="crumb" aria-label="Breadcrumb">
      <a href="/jobs">Jobs</a>
      {batchId !== null && (
        <>
          {" / "}
          <a href={`/batches/${batchId}`}>{batchId}</a>
        </>
      )}
    </nav>
  );
}

function JobActions({ job }: { readonly job: JobDetail }) {
  const failure = useSignal<unknown>(undefined);
  const isCopying = useSignal(false);
  const { route } = useLocation();
  const fail = (error: unknown) => (failure.value = error);
  const params = { id: job.id };
  const retry = () =>
    service.call("retryJob", { params }).then(({ id }) => route(`/jobs/${id}`), fail);
  const cancel = () => service.call("cancelJob", { params }).catch(fail);
  return (
    <>
      <MaybeError error={failure.value} />
      <Button onClick={() => (isCopying.value = true)}>
        <Icon name="copy" />
        Copy as
      </Button>
      {mayDo("startWork") && (
        <a class="button" href={`/new?from=${job.id}`}>
          Run with changes
        </a>
      )}
      {isTerminal(job.status) ? <RetryAction onClick={retry} /> : <CancelAction onClick={cancel} />}
      <DownloadAction job={job} />
      <ErrorBoundary>
        {isCopying.value && <SameJobDialog job={job} onClose={() => (isCopying.value = false)} />}
      </ErrorBoundary>
    </>
  );
}

interface ActionProps {
  readonly onClick: () => unknown;
}

function RetryAction({ onClick }: ActionProps) {
  if (!mayDo("retryWork")) return undefined;
  return (
    <Button onClick={onClick}>
      <Icon name="again" />
      Run again
    </Button>
  );
}

function CancelAction({ onClick }: ActionProps) {
  if (!mayDo("cancelWork")) return undefined;
  return (
    <Button look="danger" onClick={onClick}>
      Cancel job
    </Button>
  );
}

function DownloadAction({ job }: { readonly job: JobDetail }) {
  const model = job.artifacts.find(({ kind }) => kind === "model");
  if (model === undefined) return undefined;
  return (
    <a class="button main" href={artifactAddress(job.id, model.name)} download>
      Download model
    </a>
  );
}

import { useSignal } from "@preact/signals";
import { useRoute } from "preact-iso";
import { useEffect, useMemo } from "preact/hooks";
import type { Batch } from "../../contract/batch.ts";
import { isTerminal } from "../../contract/status.ts";
import { LiveSign } from "../live/live-sign.tsx";
import { service } from "../session/service.ts";
import { Button } from "../shared/button.tsx";
import { Icon } from "../shared/icon.tsx";
import { MaybeError } from "../shared/notice.tsx";
import { useTitle } from "../shared/page-head.tsx";
import { Status } from "../shared/status.tsx";
import { Age } from "../shared/time.tsx";
import { BatchMatrix } from "./batch-matrix.tsx";
import { ShownBatch } from "./shown-batch.ts";

/** A batch as a matrix of models and targets, live. */
export function BatchPage() {
  const id = useRoute().params["id"] ?? "";
  const shown = useMemo(() => new ShownBatch(id), [id]);
  useEffect(() => shown.follow(), [shown]);
  const batch = shown.batch.value;
  return (
    <main id="main">
      <MaybeError error={shown.error.value} retry={() => shown.reload()} />
      {batch && (
        <>
          <BatchHead batch={batch} />
          <BatchFacts batch={batch} />
          <BatchMatrix batch={batch} jobs={shown.jobs.value} />
        </>
      )}
    </main>
  );
}

interface BatchProps {
  readonly batch: Batch;
}

function BatchHead({ batch }: BatchProps) {
  useTitle(batch.name);
  return (
    <div class="top">
      <div>
        <nav class="crumb" aria-label="Where the batch belongs">
          <a href="/batches">Batches</a>
        </nav>
        <h1 class="title">
          {batch.name} <Status status={batch.status} />
          {!isTerminal(batch.status) && <LiveSign />}
        </h1>
      </div>
      <span class="grow" />
      <BatchActions batch={batch} />
    </div>
  );
}

function BatchActions({ batch: { id, status, counts } }: BatchProps) {
  const failure = useSignal<unknown>(undefined);
  const fail = (error: unknown) => (failure.value = error);
  const params = { id };
  const cancel = () => service.call("cancelBatch", { params }).catch(fail);
  const retry = () => service.call("retryBatch", { params }).catch(fail);
  const isOver = isTerminal(status);
  return (
    <>
      <MaybeError error={failure.value} />
      {!isOver && <CancelRest onClick={cancel} />}
      {isOver && counts.Failed > 0 && <RetryFailed count={counts.Failed} onClick={retry} />}
      <a class="button" href={`/jobs?batch=${id}`}>
        Its jobs
      </a>
    </>
  );
}

interface BatchActionProps {
  readonly onClick: () => unknown;
}

function CancelRest({ onClick }: BatchActionProps) {
  return (
    <Button look="danger" onClick={onClick}>
      Cancel what is left
    </Button>
  );
}

function RetryFailed({ count, onClick }: BatchActionProps & { readonly count: number }) {
  return (
    <Button onClick={onClick}>
      <Icon name="again" />
      Retry {count} failed
    </Button>
  );
}

function BatchFacts({ batch }: BatchProps) {
  const facts = Object.entries(listBatchFacts(batch)).filter(([, text]) => text !== null);
  return (
    <dl class="facts">
      {facts.map(([name, text]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{text}</dd>
        </div>
      ))}
    </dl>
  );
}

function listBatchFacts({ suite, revision, jobs, gatesFailed, createdAt, id }: Batch) {
  const ended = jobs.filter(({ status }) => isTerminal(status)).length;
  return {
    Suite: suite,
    Commit: revision && `${revision.sha.slice(0, 7)} on ${revision.branch ?? "no branch"}`,
    Jobs: `${ended} of ${jobs.length} ended`,
    Gates: gatesFailed > 0 ? `${gatesFailed} jobs fail a gate` : "no job fails one",
    Created: <Age at={createdAt} />,
    Id: <span class="mono">{id}</span>,
  };
}

import { useSignal } from "@preact/signals";
import type { Batch } from "../../contract/jobs/batch.ts";
import { isTerminal } from "../../contract/jobs/status.ts";
import { LiveSign } from "../live/live-sign.tsx";
import { service } from "../session/service.ts";
import { mayDo } from "../session/session.ts";
import { Button, Icon } from "../shared/button.tsx";
import { MaybeError } from "../shared/notice.tsx";
import { useTitle } from "../shared/page-head.tsx";
import { Status, ToneSign } from "../shared/status.tsx";

interface BatchProps {
  readonly batch: Batch;
}

export function BatchHead({ batch }: BatchProps) {
  useTitle(batch.name);
  return (
    <div class="top">
      <div>
        <nav class="crumb" aria-label="Breadcrumb">
          <a href="/batches">Batches</a>
        </nav>
        <h1 class="title">
          {batch.name} <BatchVerdict batch={batch} />
          {!isTerminal(batch.status) && <LiveSign />}
        </h1>
      </div>
      <span class="grow" />
      <BatchActions batch={batch} />
    </div>
  );
}

/** How a batch stands: one whose jobs fail gates is no good news. */
function BatchVerdict({ batch: { status, gatesFailed } }: BatchProps) {
  if (status !== "Completed" || gatesFailed === 0) return <Status status={status} />;
  const jobs = gatesFailed === 1 ? "1 job fails a gate" : `${gatesFailed} jobs fail a gate`;
  return <ToneSign tone="bad" icon="bad" words={`Completed, ${jobs}`} />;
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
      {!isOver && mayDo("cancelWork") && <CancelRest onClick={cancel} />}
      {isOver && counts.Failed > 0 && mayDo("retryWork") && (
        <RetryFailed count={counts.Failed} onClick={retry} />
      )}
      <a class="button" href={`/compare?batch=${id}`}>
        Compare jobs
      </a>
      <a class="button" href={`/v1/batches/${id}/artifacts`} download>
        <Icon name="down" />
        Download all
      </a>
      <a class="button" href={`/jobs?batch=${id}`}>
        Show jobs
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
      Cancel remaining jobs
    </Button>
  );
}

function RetryFailed({ count, onClick }: BatchActionProps & { readonly count: number }) {
  return (
    <Button onClick={onClick}>
      <Icon name="again" />
      Retry {count} failed jobs
    </Button>
  );
}

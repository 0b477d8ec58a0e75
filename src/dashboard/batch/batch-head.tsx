import { useSignal } from "@preact/signals";
import { useLocation } from "preact-iso";
import type { Batch } from "../../contract/batches/batch.ts";
import { isTerminal, jobStatus } from "../../contract/jobs/status.ts";
import { formatCount } from "../../contract/text/format-count.ts";
import { EndNoticeButton } from "../live/end-notice-button.tsx";
import { LiveSign } from "../live/live-sign.tsx";
import { service } from "../session/service.ts";
import { mayDo } from "../session/session.ts";
import { startedAddress } from "../shared/addresses.ts";
import { BatchVerdict } from "../shared/batch-verdict.tsx";
import { Button, Icon } from "../shared/button.tsx";
import { MaybeError } from "../shared/notice.tsx";
import { tabSigns, useTabIcon, useTitle } from "../shared/page-head.tsx";
import { useStart } from "../shared/use-start.ts";

interface BatchProps {
  readonly batch: Batch;
}

export function BatchHead({ batch }: BatchProps) {
  const tone = judgeBatch(batch);
  const total = batch.jobs.length;
  const ended = jobStatus.options
    .filter(isTerminal)
    .reduce((sum, status) => sum + batch.counts[status], 0);
  useTitle(`${tone === "work" ? `${ended} of ${total} ` : tabSigns[tone]}${batch.name}`);
  useTabIcon(tone);
  return (
    <div class="top">
      <div>
        <nav class="crumb" aria-label="Breadcrumb">
          <a href="/batches">Batches</a>
        </nav>
        <h1 class="title">
          {batch.name} <BatchVerdict status={batch.status} gatesFailed={batch.gatesFailed} />
          {!isTerminal(batch.status) && <LiveSign />}
        </h1>
      </div>
      <span class="grow" />
      <BatchActions batch={batch} />
    </div>
  );
}

function judgeBatch({ status, gatesFailed }: Batch): "work" | "off" | "calm" | "bad" {
  if (!isTerminal(status)) return "work";
  if (status === "Cancelled") return "off";
  return status === "Failed" || gatesFailed > 0 ? "bad" : "calm";
}

function BatchActions({ batch: { id, status, counts } }: BatchProps) {
  const { route } = useLocation();
  const { start } = useStart();
  const failure = useSignal<unknown>(undefined);
  const fail = (error: unknown) => (failure.value = error);
  const params = { id };
  const cancel = () => service.call("cancelBatch", { params }).catch(fail);
  const retry = () =>
    start(async (headersOf) => {
      const headers = headersOf(params);
      const { batches } = await service.call("retryBatch", { params, headers });
      route(startedAddress(batches.map((batch) => batch.id)));
    }).catch(fail);
  const isOver = isTerminal(status);
  return (
    <>
      <MaybeError error={failure.value} />
      {!isOver && <EndNoticeButton id={id} />}
      {!isOver && mayDo("cancelWork") && (
        <Button look="danger" onClick={cancel}>
          Cancel remaining jobs
        </Button>
      )}
      {isOver && counts.Failed > 0 && mayDo("retryWork") && (
        <Button onClick={retry}>
          <Icon name="again" />
          Retry {formatCount(counts.Failed, "failed job")}
        </Button>
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

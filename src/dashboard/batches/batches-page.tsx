import type { BatchSummary } from "../../contract/jobs/page.ts";
import { isTerminal } from "../../contract/jobs/status.ts";
import { LiveSign } from "../live/live-sign.tsx";
import { service } from "../session/service.ts";
import { GatesCell, ProgressBar, Status } from "../shared/status.tsx";
import { EmptyState, MaybeError } from "../shared/notice.tsx";
import { Age, PageHead } from "../shared/page-head.tsx";
import { TableHead } from "../shared/table-head.tsx";
import { useLive } from "../live/use-live.ts";

/** Batches, newest first: each is several models for several targets. */
export function BatchesPage() {
  const {
    value: batches,
    error,
    reload,
  } = useLive(loadBatches, {
    concerns: ({ batch, deletedBatch }) => (batch ?? deletedBatch) !== undefined,
  });
  return (
    <main id="main">
      <PageHead title="Batches" sign={<LiveSign />} />
      <MaybeError error={error} retry={reload} />
      {batches?.length === 0 && <NoBatches />}
      {batches !== undefined && batches.length > 0 && <BatchTable batches={batches} />}
    </main>
  );
}

async function loadBatches(): Promise<readonly BatchSummary[]> {
  return (await service.call("listBatches", {})).batches;
}

function NoBatches() {
  return (
    <EmptyState title="No batches yet">
      <p class="soft">
        The GitHub Action and <code>POST /v1/batches</code> submit several models at once.
      </p>
    </EmptyState>
  );
}

const columns = { Status: "", "Batch, suite": "", "Jobs finished": "", Gates: "", Created: "" };

function BatchTable({ batches }: { readonly batches: readonly BatchSummary[] }) {
  return (
    <div class="card wide">
      <table class="batches">
        <caption class="sr">Batches, newest first</caption>
        <TableHead columns={columns} />
        <tbody>
          {batches.map((batch) => (
            <BatchRow key={batch.id} batch={batch} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function BatchRow({ batch: { id, name, suite, status, ...batch } }: { batch: BatchSummary }) {
  return (
    <tr>
      <td>
        <Status status={status} />
      </td>
      <BatchNameCell id={id} name={name} suite={suite} />
      <td>
        <EndedJobs counts={batch.counts} />
      </td>
      <GatesCell gatesFailed={batch.gatesFailed} />
      <td class="dim">
        <Age at={batch.createdAt} />
      </td>
    </tr>
  );
}

function BatchNameCell({ id, name, suite }: Pick<BatchSummary, "id" | "name" | "suite">) {
  return (
    <td class="two">
      <a class="row-link" href={`/batches/${id}`}>
        {name}
      </a>
      <small>{suite ?? "no suite"}</small>
    </td>
  );
}

function EndedJobs({ counts }: Pick<BatchSummary, "counts">) {
  const entries = Object.entries(counts);
  const all = entries.reduce((sum, [, count]) => sum + count, 0);
  const ended = entries
    .filter(([status]) => isTerminal(status as keyof typeof counts))
    .reduce((sum, [, count]) => sum + count, 0);
  return (
    <span class="ended-jobs">
      <ProgressBar fraction={ended / all} label="Jobs finished" />
      {ended} of {all}
    </span>
  );
}

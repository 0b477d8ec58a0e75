import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useLocation } from "preact-iso";
import type { BatchSummary } from "../../contract/batches/batch.ts";
import { isTerminal } from "../../contract/jobs/status.ts";
import { LiveSign } from "../live/live-sign.tsx";
import { service } from "../session/service.ts";
import { mayDo } from "../session/session.ts";
import { BatchVerdict } from "../shared/batch-verdict.tsx";
import { GatesCell, ProgressBar } from "../shared/status.tsx";
import { EmptyState, MaybeError } from "../shared/notice.tsx";
import { Age, PageHead } from "../shared/page-head.tsx";
import { TableHead } from "../shared/table-head.tsx";
import { useLivePages } from "../live/use-live-pages.ts";
import { Icon } from "../shared/button.tsx";
import { ListFoot } from "../shared/list-foot.tsx";

/** Batches, newest first: each is several models for several targets. */
export function BatchesPage() {
  const { query, route } = useLocation();
  const { suite } = query;
  const { entries, hasMore, error, reload, loadMore } = useLivePages(
    (cursor) => loadBatches(suite, cursor),
    {
      of: [suite],
      concerns: ({ batch, deletedBatch }) => (batch ?? deletedBatch) !== undefined,
    },
  );
  return (
    <main id="main">
      <PageHead title="Batches" sign={<LiveSign />}>
        <SuiteSearch key={suite} suite={suite} onSearch={route} />
        {mayDo("startWork") && <NewBatchLink />}
      </PageHead>
      <MaybeError error={error} retry={reload} />
      {entries?.length === 0 && (suite === undefined ? <NoBatches /> : <NoneOfSuite />)}
      {entries !== undefined && entries.length > 0 && (
        <BatchTable batches={entries}>
          <ListFoot
            count={entries.length}
            nouns={["batch", "batches"]}
            hasMore={hasMore}
            onMore={loadMore}
          />
        </BatchTable>
      )}
    </main>
  );
}

async function loadBatches(suite: string | undefined, cursor: string | undefined) {
  const query = { suite, cursor, limit: "50" };
  const { batches, nextCursor } = await service.call("listBatches", { query });
  return { entries: batches, nextCursor };
}

interface SuiteSearchProps {
  readonly suite: string | undefined;
  readonly onSearch: (address: string) => void;
}

/** Restricts the list to a suite. */
function SuiteSearch({ suite, onSearch }: SuiteSearchProps) {
  const text = useSignal(suite ?? "");
  const submit = (event: Event) => {
    event.preventDefault();
    const wanted = text.value.trim();
    onSearch(wanted === "" ? "/batches" : `/batches?suite=${encodeURIComponent(wanted)}`);
  };
  return (
    <form class="field" role="search" onSubmit={submit}>
      <Icon name="search" />
      <input
        aria-label="Batches of a suite"
        placeholder="Name of a suite"
        autocomplete="off"
        spellcheck={false}
        value={text.value}
        onInput={({ currentTarget }) => (text.value = currentTarget.value)}
      />
    </form>
  );
}

function NewBatchLink() {
  return (
    <a class="button main" href="/new-batch">
      <Icon name="plus" />
      New batch
    </a>
  );
}

function NoneOfSuite() {
  return (
    <EmptyState title="No batch of this suite">
      <a class="button" href="/batches">
        Show all batches
      </a>
    </EmptyState>
  );
}

function NoBatches() {
  return (
    <EmptyState title="No batches yet">
      <p class="soft">
        A batch compresses several models for several targets, by one recipe or several. The GitHub
        Action submits one for each commit.
      </p>
      {mayDo("startWork") && <NewBatchLink />}
    </EmptyState>
  );
}

const columns = { Status: "", "Batch, suite": "", "Jobs finished": "", Gates: "", Created: "" };

interface BatchTableProps {
  readonly batches: readonly BatchSummary[];
  readonly children: ComponentChildren;
}

function BatchTable({ batches, children }: BatchTableProps) {
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
      {children}
    </div>
  );
}

function BatchRow({ batch: { id, name, suite, status, ...batch } }: { batch: BatchSummary }) {
  return (
    <tr>
      <td>
        <BatchVerdict status={status} gatesFailed={batch.gatesFailed} isShort />
      </td>
      <BatchNameCell id={id} name={name} suite={suite} />
      <td>
        <EndedJobs counts={batch.counts} />
      </td>
      <GatesCell status={status} gatesFailed={batch.gatesFailed} />
      <td class="dim">
        <Age at={batch.createdAt} />
      </td>
    </tr>
  );
}

function BatchNameCell({ id, name, suite }: Pick<BatchSummary, "id" | "name" | "suite">) {
  return (
    <td class="two cut-anywhere">
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

import type { Suite } from "../../contract/batches/suite.ts";
import { suiteAddress } from "../../contract/page-addresses.ts";
import { service } from "../session/service.ts";
import { BatchVerdict } from "../shared/batch-verdict.tsx";
import { GatesCell } from "../shared/status.tsx";
import { EmptyState, MaybeError } from "../shared/notice.tsx";
import { Age, PageHead } from "../shared/page-head.tsx";
import { TableHead } from "../shared/table-head.tsx";
import { useLive } from "../live/use-live.ts";
import { describeCommit } from "../shared/format.ts";

/** Suites: batches of the same models over time. */
export function SuitesPage() {
  const { value: suites, error, reload } = useLive(loadSuites);
  return (
    <main id="main">
      <PageHead title="Suites" />
      <MaybeError error={error} retry={reload} />
      {suites?.length === 0 && <NoSuites />}
      {suites !== undefined && suites.length > 0 && <SuiteTable suites={suites} />}
    </main>
  );
}

async function loadSuites(): Promise<readonly Suite[]> {
  return (await service.call("listSuites", {})).suites;
}

function NoSuites() {
  return (
    <EmptyState title="No suites yet">
      <p class="soft">
        A batch with a <code>suite</code> and a <code>revision</code> starts one.
      </p>
    </EmptyState>
  );
}

const columns = {
  Suite: "",
  Batches: "num phone-off",
  Newest: "",
  Commit: "phone-off",
  Gates: "",
  Created: "",
};

function SuiteTable({ suites }: { readonly suites: readonly Suite[] }) {
  return (
    <div class="card wide scrolled" tabIndex={0} role="region" aria-label="Suites">
      <table>
        <caption class="sr">Suites, newest batches first</caption>
        <TableHead columns={columns} />
        <tbody>
          {suites.map((suite) => (
            <SuiteRow key={suite.name} suite={suite} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function SuiteRow({ suite: { name, batches, newest } }: { readonly suite: Suite }) {
  const { revision, gatesFailed, status } = newest;
  return (
    <tr>
      <td class="wrapped">
        <a class="row-link" href={suiteAddress(name)}>
          {name}
        </a>
      </td>
      <td class="num phone-off">{batches}</td>
      <NewestBatchCell suite={name} newest={newest} />
      <td class="soft phone-off">{revision ? describeCommit(revision) : "no commit"}</td>
      <GatesCell status={status} gatesFailed={gatesFailed} />
      <td class="dim">
        <Age at={newest.createdAt} />
      </td>
    </tr>
  );
}

interface NewestBatchCellProps extends Pick<Suite, "newest"> {
  readonly suite: string;
}

function NewestBatchCell({ suite, newest }: NewestBatchCellProps) {
  return (
    <td>
      <a href={`/batches/${newest.id}`}>
        <BatchVerdict status={newest.status} gatesFailed={newest.gatesFailed} isShort />
        <span class="sr">, newest batch of {suite}</span>
      </a>
    </td>
  );
}

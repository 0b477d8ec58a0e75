import type { AuditEntry } from "../../contract/people/audit.ts";
import { administratorId } from "../../contract/people/person.ts";
import { isId } from "../../contract/id.ts";
import { service } from "../session/service.ts";
import { MaybeError } from "../shared/notice.tsx";
import { Age, PageHead } from "../shared/page-head.tsx";
import { TableHead } from "../shared/table-head.tsx";
import { useLivePages } from "../live/use-live-pages.ts";
import { ListFoot } from "../shared/list-foot.tsx";

const columns = { When: "", Who: "", Action: "", Subject: "" };

/** Who changed what, newest first. */
export function AuditPage() {
  const { entries, hasMore, error, reload, loadMore } = useLivePages(loadEntries);
  return (
    <main id="main">
      <PageHead title="Audit" />
      <MaybeError error={error} retry={reload} />
      <div class="card wide scrolled" tabIndex={0} role="region" aria-label="Audit">
        <table>
          <caption class="sr">Changes, newest first</caption>
          <TableHead columns={columns} />
          <tbody>
            {entries?.map((entry) => <EntryRow key={entry.id} entry={entry} />) ?? (
              <LoadingRow isFailed={error !== undefined} />
            )}
          </tbody>
        </table>
        {entries && (
          <ListFoot
            count={entries.length}
            nouns={["entry", "entries"]}
            hasMore={hasMore}
            onMore={loadMore}
          />
        )}
      </div>
    </main>
  );
}

function loadEntries(cursor: string | undefined) {
  return service.call("listAudit", { query: { limit: "100", cursor } });
}

function EntryRow({ entry }: { readonly entry: AuditEntry }) {
  const { at, tokenName, action, subject } = entry;
  return (
    <tr>
      <td class="soft">
        <Age at={at} />
      </td>
      <td class="two cut caller">
        {tokenName}
        <small>{describeCaller(entry)}</small>
      </td>
      <td title={action}>{sayAction(action)}</td>
      <td class="mono">
        <Subject id={subject} />
      </td>
    </tr>
  );
}

function LoadingRow({ isFailed }: { readonly isFailed: boolean }) {
  return (
    <tr>
      <td class="dim" colSpan={Object.keys(columns).length}>
        {isFailed ? "The entries could not be loaded" : "Loading…"}
      </td>
    </tr>
  );
}

/** The words of an operation: `Start compression`. */
function sayAction(action: string): string {
  const words = action.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** Names are everybody's own choice: ids distinguish people and tokens. */
function describeCaller({ personId, tokenId }: AuditEntry): string {
  if (personId !== null)
    return personId === administratorId ? "administrator, by sign-in link" : personId;
  return tokenId ?? "the service";
}

/** What was changed, with a link where it has a page; a hash is cut where nobody reads on. */
function Subject({ id }: { readonly id: string }) {
  if (/^[0-9a-f]{64}$/.test(id))
    return <a href={`/models/${id}`} title={id}>{`${id.slice(0, 12)}…`}</a>;
  if (id === administratorId) return <>administrator</>;
  const [isJob, isBatch] = [isId("job", id), isId("batch", id)];
  if (isJob) return <a href={`/jobs/${id}`}>{id}</a>;
  return isBatch ? <a href={`/batches/${id}`}>{id}</a> : <>{id}</>;
}

import type { ModelVersion } from "./group-models.ts";
import { service } from "../session/service.ts";
import { useLive } from "../live/use-live.ts";
import { jobAddress } from "../../contract/page-addresses.ts";
import { TableHead } from "../shared/table-head.tsx";
import { formatBytes } from "../../contract/text/format-bytes.ts";
import { Age } from "../shared/page-head.tsx";

const columns = { "SHA-256": "", Source: "", Size: "num", Jobs: "num", "Last used": "num" };
const shownAtFirst = 12;

/** The files that jobs of the model's name read. */
export function VersionCard({ versions }: { readonly versions: readonly ModelVersion[] }) {
  const shown = versions.slice(0, shownAtFirst);
  return (
    <section class="card c12">
      <header>
        <h2>Versions</h2>
        <span class="dim">
          {versions.length === shown.length ? versions.length : `the newest ${shown.length}`}
        </span>
      </header>
      <div class="scrolled" tabIndex={0} role="region" aria-label="Versions">
        <table>
          <TableHead columns={columns} />
          <tbody>
            {shown.map((version) => (
              <VersionRow key={version.source} version={version} />
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

/** What the file is, as the newest job found it. */
function VersionRow({ version }: { readonly version: ModelVersion }) {
  const params = { id: version.newestJobId };
  const { value: job } = useLive(() => service.call("getJob", { params }), {
    of: [version.newestJobId],
  });
  const { actualSha256 = null, bytes = null } = job?.model ?? {};
  return (
    <tr>
      <td class="mono" title={actualSha256 ?? undefined}>
        {actualSha256 === null ? "not fetched" : `${actualSha256.slice(0, 12)}…`}
      </td>
      <td class="mono soft source-cell cut" title={version.source}>
        {version.source}
      </td>
      <td class="num">{bytes !== null && formatBytes(bytes)}</td>
      <td class="num">{version.jobs}</td>
      <td class="num dim">
        {job && (
          <a href={jobAddress(job.id)}>
            <Age at={job.createdAt} />
          </a>
        )}
      </td>
    </tr>
  );
}

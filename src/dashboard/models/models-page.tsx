import { groupModels, type NamedModel } from "./group-models.ts";
import { service } from "../session/service.ts";
import { mayDo } from "../session/session.ts";
import { modelAddress } from "../shared/addresses.ts";
import { Icon } from "../shared/button.tsx";
import { EmptyState, MaybeError } from "../shared/notice.tsx";
import { PageHead } from "../shared/page-head.tsx";
import { TableHead } from "../shared/table-head.tsx";
import { useLive } from "../live/use-live.ts";

/** The models that jobs were started for, and uploads that no job has named. */
export function ModelsPage() {
  const {
    value: models,
    error,
    reload,
  } = useLive(loadModels, {
    concerns: ({ job, deletedJob }) => job?.status === "Pending" || deletedJob !== undefined,
    pauseMs: 2000,
  });
  return (
    <main id="main">
      <PageHead title="Models">
        {mayDo("startWork") && (
          <a class="button main" href="/new">
            <Icon name="plus" />
            New job
          </a>
        )}
      </PageHead>
      <MaybeError error={error} retry={reload} />
      {models?.length === 0 && <NoModels />}
      {models !== undefined && models.length > 0 && <ModelTable models={models} />}
    </main>
  );
}

async function loadModels(): Promise<readonly NamedModel[]> {
  return groupModels((await service.call("listModelVersions", {})).versions);
}

function NoModels() {
  return (
    <EmptyState title="No models yet">
      <p class="soft">A model is here once a job was started for it.</p>
      <a class="button main" href="/new">
        New job
      </a>
    </EmptyState>
  );
}

const columns = { Model: "", Versions: "num", Jobs: "num", "Newest version": "phone-off" };

function ModelTable({ models }: { readonly models: readonly NamedModel[] }) {
  return (
    <div class="card wide">
      <table class="models">
        <caption class="sr">Models, those of the newest jobs first</caption>
        <TableHead columns={columns} />
        <tbody>
          {models.map(({ name, versions, jobs }) => (
            <tr key={name}>
              <td class="cut">
                <a class="row-link" href={modelAddress(name)}>
                  {name}
                </a>
              </td>
              <td class="num">{versions.length}</td>
              <td class="num">{jobs}</td>
              <td class="mono soft cut phone-off">{versions[0]?.source}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

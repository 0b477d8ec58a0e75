import "./suite.css";
import { useSignal } from "@preact/signals";
import { useLocation, useRoute } from "preact-iso";
import { useMemo } from "preact/hooks";
import type { SuiteHistory } from "../../contract/jobs/suite.ts";
import { suiteAddress } from "../../contract/page-addresses.ts";
import { LiveSign } from "../live/live-sign.tsx";
import { useLive } from "../live/use-live.ts";
import { service } from "../session/service.ts";
import { EmptyState, MaybeError } from "../shared/notice.tsx";
import { useTitle } from "../shared/page-head.tsx";
import { CommitTable } from "./commit-table.tsx";
import { SuiteChart } from "./suite-chart.tsx";
import { lineLook, listCharts, listTargets } from "./suite-lines.ts";

/** Figures of a suite's models over its commits. */
export function SuitePage() {
  const name = useRoute().params["name"] ?? "";
  const { query } = useLocation();
  const model = query["model"];
  const { value, error, reload } = useLive(
    () => service.call("getSuiteHistory", { query: { suite: name, model } }),
    { of: [name, model], concerns: ({ batch }) => batch?.suite === name },
  );
  useTitle(name);
  return (
    <main id="main">
      <SuiteHead name={name} history={value} />
      <MaybeError error={error} retry={reload} />
      {value && <SuiteSheet history={value} />}
    </main>
  );
}

function SuiteHead({ name, history }: { name: string; history: SuiteHistory | undefined }) {
  return (
    <div class="top">
      <div>
        <nav class="crumb" aria-label="Breadcrumb">
          <a href="/suites">Suites</a>
        </nav>
        <h1 class="title">
          {name} <LiveSign />
        </h1>
      </div>
      <span class="grow" />
      {history && history.models.length > 0 && <ModelChoice name={name} history={history} />}
    </div>
  );
}

function ModelChoice({ name, history }: { readonly name: string; history: SuiteHistory }) {
  const { route } = useLocation();
  const { model, models } = history;
  const known = model === null || models.includes(model) ? models : [model, ...models];
  return (
    <label class="model-choice">
      Model
      <select
        value={model ?? ""}
        onChange={({ currentTarget }) => route(suiteAddress(name, currentTarget.value))}
      >
        {known.map((each) => (
          <option key={each} value={each}>
            {each}
          </option>
        ))}
      </select>
    </label>
  );
}

function SuiteSheet({ history }: { readonly history: SuiteHistory }) {
  const chosen = useSignal<number | undefined>(undefined);
  const charts = useMemo(() => listCharts(history), [history]);
  const commits = history.batches.map(
    ({ id, revision }) => revision?.sha.slice(0, 7) ?? id.slice(-6),
  );
  if (history.batches.length === 0) return <EmptyState title="This suite has no batches" />;
  return (
    <>
      <TargetLegend targets={listTargets(history)} />
      <div class="sheet">
        {charts.map((chart) => (
          <SuiteChart key={chart.title} chart={chart} commits={commits} chosen={chosen} />
        ))}
        <CommitTable history={history} chosen={chosen} />
      </div>
    </>
  );
}

function TargetLegend({ targets }: { readonly targets: readonly string[] }) {
  return (
    <ul class="line-legend" aria-label="Targets">
      {targets.map((target, index) => {
        const { colour, dash } = lineLook(index);
        return (
          <li key={target}>
            <svg viewBox="0 0 24 8" aria-hidden="true" class={`line-${colour}`}>
              <path d="M0 4h24" stroke-dasharray={dash.join(" ")} />
            </svg>
            {target}
          </li>
        );
      })}
    </ul>
  );
}

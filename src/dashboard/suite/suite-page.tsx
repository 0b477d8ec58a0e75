import "./suite.css";
import { useSignal } from "@preact/signals";
import { useLocation, useRoute } from "preact-iso";
import { useMemo } from "preact/hooks";
import type { SuiteHistory } from "../../contract/batches/suite.ts";
import { suiteAddress } from "../../contract/page-addresses.ts";
import { LiveSign } from "../live/live-sign.tsx";
import { useLive } from "../live/use-live.ts";
import { service } from "../session/service.ts";
import { EmptyState, MaybeError } from "../shared/notice.tsx";
import { useTitle } from "../shared/page-head.tsx";
import { CommitTable } from "./commit-table.tsx";
import { SuiteChart } from "./suite-chart.tsx";
import { SuiteVerdict } from "./suite-verdict.tsx";
import { lineLook, listBranches, listCharts, listTargets, ofBranch } from "./suite-lines.ts";

/** Figures of a suite's models over its commits. */
export function SuitePage() {
  const name = useRoute().params["name"] ?? "";
  const { query } = useLocation();
  const { model, branch } = query;
  const { value, error, reload } = useLive(() => loadSuite({ suite: name, model }, branch), {
    of: [name, model, branch],
    concerns: ({ batch }) => batch?.suite === name,
  });
  useTitle(name);
  return (
    <main id="main">
      <SuiteHead name={name} history={value?.history} />
      <MaybeError error={error} retry={reload} />
      {/* What was chosen of one branch or model is nothing of another. */}
      {value && <SuiteSheet key={`${model} ${branch}`} {...value} branch={branch} />}
    </main>
  );
}

/** The history of a model, and which models fail in the newest batch of the branch. */
async function loadSuite(query: { suite: string; model: string | undefined }, branch?: string) {
  const history = await service.call("getSuiteHistory", { query });
  const newest = ofBranch(history, branch ?? listBranches(history)[0]).batches.at(-1);
  if (newest === undefined) return { history, failing: [] };
  const { jobs } = await service.call("getBatch", { params: { id: newest.id } });
  const bad = jobs.filter(({ gatesFailed, status }) => gatesFailed || status === "Failed");
  return { history, failing: [...new Set(bad.map((job) => job.model))] };
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

interface SuiteSheetProps {
  readonly history: SuiteHistory;
  readonly failing: readonly string[];
  /** By default the one with the most batches. */
  readonly branch: string | undefined;
}

function SuiteSheet({ history: whole, failing, branch }: SuiteSheetProps) {
  const chosen = useSignal<number | undefined>(undefined);
  const branches = listBranches(whole);
  const shown = branch ?? branches[0];
  const history = useMemo(() => ofBranch(whole, shown), [whole, shown]);
  const charts = useMemo(() => listCharts(history), [history]);
  const commits = history.batches.map(
    ({ id, revision }) => revision?.sha.slice(0, 7) ?? id.slice(-6),
  );
  if (whole.batches.length === 0) return <EmptyState title="This suite has no batches" />;
  return (
    <>
      {branches.length > 1 && (
        <BranchTabs history={whole} branches={branches} shown={shown ?? ""} />
      )}
      <TargetLegend targets={listTargets(history)} />
      <div class="sheet">
        <SuiteVerdict history={history} failing={failing} />
        {charts.map((chart) => (
          <SuiteChart key={chart.title} chart={chart} commits={commits} chosen={chosen} />
        ))}
        <CommitTable history={history} chosen={chosen} />
      </div>
    </>
  );
}

interface BranchTabsProps {
  readonly history: SuiteHistory;
  readonly branches: readonly string[];
  readonly shown: string;
}

function BranchTabs({ history: { suite, model }, branches, shown }: BranchTabsProps) {
  const address = suiteAddress(suite, model ?? undefined);
  const join = address.includes("?") ? "&" : "?";
  return (
    <div class="filters">
      <nav class="tabs" aria-label="Branch">
        {branches.map((branch) => (
          <a
            key={branch}
            href={`${address}${join}branch=${encodeURIComponent(branch)}`}
            aria-current={branch === shown ? "true" : undefined}
          >
            {branch}
          </a>
        ))}
      </nav>
    </div>
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

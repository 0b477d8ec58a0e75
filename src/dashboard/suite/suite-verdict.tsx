import { Fragment } from "preact";
import { describeRecipe } from "../shared/describe-recipe.ts";
import type { SuiteHistory } from "../../contract/batches/suite.ts";
import { suiteAddress } from "../../contract/page-addresses.ts";
import { describeCommit } from "../shared/format.ts";
import { Icon } from "../shared/button.tsx";
import { findWithFormer, listTargets } from "./suite-lines.ts";
import { findFirstFailing } from "./find-first-failing.ts";

interface SuiteVerdictProps {
  readonly history: SuiteHistory;
  /** Models of the newest batch that fail gates there, or that have a failed job. */
  readonly failing: readonly string[];
}

/** Which models of a suite fail in the newest batch, and the chosen one since which commit. */
export function SuiteVerdict({ history, failing }: SuiteVerdictProps) {
  const place = findFirstFailing(history);
  const others = failing.filter((model) => model !== history.model);
  if (place === undefined && others.length === 0) return undefined;
  return (
    <div class="notice bad c12">
      <Icon name="bad" />
      <div>
        {place !== undefined && <FailingSince history={history} place={place} />}
        {others.length > 0 && <OtherModels suite={history.suite} models={others} />}
      </div>
    </div>
  );
}

function FailingSince({ history, place }: { readonly history: SuiteHistory; place: number }) {
  const batch = history.batches[place];
  if (batch === undefined) return undefined;
  const { id, revision } = batch;
  const recipes = describeRecipeChanges(history, place);
  return (
    <p>
      <b>{history.model}</b> fails gates{" "}
      {place === 0 ? "in all batches that are shown, from " : "since "}
      <b>{revision === null ? `batch ${id}` : describeCommit(revision)}</b>
      {recipes.length > 0 && `, where the recipe changed: ${recipes.join("; ")}`}.{" "}
      <a href={`/batches/${id}`}>What changed there</a>
    </p>
  );
}

function describeRecipeChanges(history: SuiteHistory, place: number): string[] {
  return listTargets(history).flatMap((target) => {
    const { job, former } = findWithFormer(history, { place, target });
    if (job === undefined || former === undefined) return [];
    const [before, now] = [describeRecipe(former), describeRecipe(job)];
    return before === now ? [] : [`${target} from ${before} to ${now}`];
  });
}

function OtherModels({ suite, models }: { readonly suite: string; models: readonly string[] }) {
  return (
    <p>
      In the newest batch,{" "}
      {models.map((model, index) => (
        <Fragment key={model}>
          {index > 0 && ", "}
          <a href={suiteAddress(suite, model)}>{model}</a>
        </Fragment>
      ))}{" "}
      {models.length === 1 ? "does" : "do"} not pass.
    </p>
  );
}

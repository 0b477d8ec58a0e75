import type { SuiteHistory } from "../../contract/jobs/suite.ts";
import { describeCommit } from "../shared/format.ts";
import { Icon } from "../shared/button.tsx";
import { findFirstFailing } from "./find-first-failing.ts";

/** Since which commit a suite's model fails its gates, where the newest batch does. */
export function SuiteVerdict({ history }: { readonly history: SuiteHistory }) {
  const place = findFirstFailing(history);
  const batch = place === undefined ? undefined : history.batches[place];
  if (batch === undefined) return undefined;
  const { id, revision } = batch;
  const isFirst = place === 0;
  return (
    <div class="notice bad c12">
      <Icon name="bad" />
      <p>
        <b>{history.model}</b> fails gates{" "}
        {isFirst ? "in all batches that are shown, from " : "since "}
        <b>{revision === null ? `batch ${id}` : describeCommit(revision)}</b>.{" "}
        <a href={`/batches/${id}`}>What changed there</a>
      </p>
    </div>
  );
}

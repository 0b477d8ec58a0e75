import { useSignal } from "@preact/signals";
import type { Job } from "../../contract/jobs/job.ts";
import type { ModelDiff, WeightChange } from "../../contract/jobs/model-diff.ts";
import { describeDistance } from "../../contract/jobs/describe-model-diff.ts";
import { TableHead } from "../shared/table-head.tsx";
import { ChangedName, ChangeSign, FindChanges, mostRows, RestNote } from "./change-list.tsx";

const columns = { Change: "", Weight: "", "By, of its norm": "num" };

interface WeightChangeTableProps {
  readonly job: Job;
  readonly diff: ModelDiff;
  readonly of: "model" | "result";
}

/** Weights that changed, those that changed most first. */
export function WeightChangeTable({ job, diff, of }: WeightChangeTableProps) {
  const { weights, weightChanges } = diff;
  const wanted = useSignal("");
  const count = weights.added + weights.removed + weights.changed;
  const text = wanted.value.trim().toLowerCase();
  const found = weightChanges.filter(({ name }) => name.toLowerCase().includes(text));
  const distances = weightChanges.map(({ distance }) => Math.min(1, distance ?? 0));
  const largest = Math.max(0, ...distances);
  return (
    <section class="card c12">
      <header>
        <h2>Weights</h2>
        <span class="dim">{count === 0 ? "none changed" : `${count} changed, most first`}</span>
      </header>
      {count > 0 && (
        <>
          <FindChanges what="weights" placeholder="Name" wanted={wanted} found={found.length} />
          <table class="change-rows">
            <caption class="sr">Changed weights</caption>
            <TableHead columns={columns} />
            <tbody>
              {found.slice(0, mostRows).map((change, i) => (
                <WeightRow key={i} {...{ job, of, change, largest }} />
              ))}
            </tbody>
          </table>
          <RestNote found={found.length} />
          {of === "model" && (
            <p class="card-note">
              The change is the norm of the difference relative to the weight’s own, estimated to
              about an eighth of itself.
            </p>
          )}
        </>
      )}
    </section>
  );
}

interface WeightRowProps extends Pick<WeightChangeTableProps, "job" | "of"> {
  readonly change: WeightChange;
  /** Of all distances. */
  readonly largest: number;
}

function WeightRow({ job, of, change, largest }: WeightRowProps) {
  const { how, name, before, after, distance } = change;
  const forms = [before, after].filter((form) => form !== null);
  return (
    <tr>
      <td>
        <ChangeSign how={how} />
      </td>
      <td class="two cut" title={name}>
        <ChangedName job={job} of={of} change={change} />
        <small>{[...new Set(forms)].join(" → ")}</small>
      </td>
      <td class="num">
        {distance === null ? (
          <span class="dim">not known</span>
        ) : (
          <span class="sqnr">
            {describeDistance(distance)}
            <span class="bar warn" aria-hidden="true">
              <span
                style={{ width: `${largest === 0 ? 0 : (100 * Math.min(1, distance)) / largest}%` }}
              />
            </span>
          </span>
        )}
      </td>
    </tr>
  );
}

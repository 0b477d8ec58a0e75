import { useSignal } from "@preact/signals";
import type { Job } from "../../contract/jobs/job.ts";
import type { ModelDiff, NodeChange } from "../../contract/jobs/model-diff.ts";
import { describeNodeChange } from "../../contract/jobs/describe-model-diff.ts";
import { TableHead } from "../shared/table-head.tsx";
import { ChangedName, ChangeSign, FindChanges, mostRows, RestNote } from "./change-list.tsx";

const columns = { Change: "", Node: "", Between: "phone-off" };

interface NodeTableProps {
  readonly job: Job;
  readonly diff: ModelDiff;
  readonly of: "model" | "result";
}

/** Nodes that were added, removed or changed, after a count of each by operator. */
export function NodeTable({ job, diff, of }: NodeTableProps) {
  const { nodes, nodeChanges } = diff;
  const wanted = useSignal("");
  const count = nodes.added + nodes.removed + nodes.changed;
  const found = nodeChanges.filter(matches(wanted.value));
  return (
    <section class="card c12">
      <header>
        <h2>Nodes</h2>
        <span class="dim">{count === 0 ? "none changed" : `${count} changed`}</span>
      </header>
      {count > 0 && (
        <>
          <p class="card-text">{countByOperator(nodeChanges)}</p>
          <FindChanges
            what="nodes"
            placeholder="Name or operator"
            wanted={wanted}
            found={found.length}
          />
          <NodeRows job={job} of={of} changes={found.slice(0, mostRows)} />
          <RestNote found={found.length} />
          {count > nodeChanges.length && (
            <p class="card-note">The first {nodeChanges.length} changes are kept.</p>
          )}
        </>
      )}
    </section>
  );
}

function matches(text: string): (change: NodeChange) => boolean {
  const wanted = text.trim().toLowerCase();
  return ({ name, op, how }) => [name, op, how].join(" ").toLowerCase().includes(wanted);
}

/** `Added: 96 × DequantizeLinear, 2 × Cast. Changed: 96 × MatMul.` */
function countByOperator(changes: readonly NodeChange[]): string {
  const byHow = Map.groupBy(changes, ({ how }) => how);
  const parts = (["added", "removed", "changed"] as const).flatMap((how) => {
    const ofHow = byHow.get(how);
    if (ofHow === undefined) return [];
    const counts = [...Map.groupBy(ofHow, ({ op }) => op)]
      .map(([op, { length }]) => [op, length] as const)
      .toSorted(([, a], [, b]) => b - a);
    return `${how}: ${counts.map(([op, length]) => `${length} × ${op}`).join(", ")}`;
  });
  const text = parts.join("; ");
  return text.charAt(0).toUpperCase() + text.slice(1);
}

interface NodeRowsProps extends Pick<NodeTableProps, "job" | "of"> {
  readonly changes: readonly NodeChange[];
}

function NodeRows({ job, of, changes }: NodeRowsProps) {
  return (
    <table class="change-rows">
      <caption class="sr">Changed nodes</caption>
      <TableHead columns={columns} />
      <tbody>
        {changes.map((change, i) => (
          <tr key={i}>
            <td>
              <ChangeSign how={change.how} />
            </td>
            <td class="two cut" title={change.name}>
              <ChangedName job={job} of={of} change={change} />
              <small>
                {change.op}
                {change.what.length > 0 && `: ${describeNodeChange(change)}`}
              </small>
            </td>
            <td class="two cut phone-off">
              <Neighbours word="from" names={change.from} />
              <Neighbours word="to" names={change.to} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Neighbours({ word, names }: { readonly word: string; readonly names: readonly string[] }) {
  if (names.length === 0) return undefined;
  const text = names.join(", ");
  return (
    <small title={text}>
      {word} <span class="mono">{text}</span>
    </small>
  );
}

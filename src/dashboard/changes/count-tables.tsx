import type { ModelDiff } from "../../contract/jobs/model-diff.ts";
import { TableHead } from "../shared/table-head.tsx";

const countColumns = {
  Part: "",
  Added: "num",
  Removed: "num",
  Changed: "num",
  "Other name": "num",
  Same: "num",
};

interface CountTableProps {
  readonly diff: ModelDiff;
  readonly of: "model" | "result";
}

/** How many nodes and weights changed, and how many did not. */
export function CountTable({ diff: { nodes, weights }, of }: CountTableProps) {
  return (
    <section class="card c7">
      <header>
        <h2>In numbers</h2>
      </header>
      <table>
        <caption class="sr">Numbers of nodes and weights by how they changed</caption>
        <TableHead columns={countColumns} />
        <tbody>
          <CountRow title="Nodes" counts={nodes} />
          <CountRow title={of === "result" ? "Original's weights" : "Weights"} counts={weights} />
        </tbody>
      </table>
    </section>
  );
}

const countNames = ["added", "removed", "changed", "renamed", "same"] as const;

function CountRow({ title, counts }: { title: string; counts: ModelDiff["nodes"] }) {
  return (
    <tr>
      <th scope="row">{title}</th>
      {countNames.map((name) => (
        <td key={name} class={counts[name] === 0 ? "num dim" : "num"}>
          {counts[name].toLocaleString("en")}
        </td>
      ))}
    </tr>
  );
}

const interfaceColumns = { What: "", Name: "", Before: "", Now: "" };

export function InterfaceTable({ values }: Pick<ModelDiff, "values">) {
  // Types and shapes are long.
  const isWide = values.some(({ what }) => what !== "opset");
  return (
    <section class={isWide ? "card c12" : "card c5"}>
      <header>
        <h2>Opset, inputs and outputs</h2>
      </header>
      {values.length === 0 ? (
        <p class="card-note">They are the same.</p>
      ) : (
        <div class="scrolled" tabIndex={0} role="region" aria-label="Opset, inputs and outputs">
          <table>
            <TableHead columns={interfaceColumns} />
            <tbody>
              {values.map(({ what, name, before, after }) => (
                <tr key={`${what} ${name}`}>
                  <td>{what}</td>
                  <td class="mono">{name}</td>
                  <td class="mono">{before ?? <span class="dim">none</span>}</td>
                  <td class="mono">{after ?? <span class="dim">none</span>}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}

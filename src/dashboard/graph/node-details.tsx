import { ChangeSign } from "../changes/change-list.tsx";
import { describeNodeChange } from "../../contract/jobs/describe-model-diff.ts";
import type { ModelGraphWeight } from "../../contract/jobs/model-graph.ts";
import { formatBytes } from "../../contract/text/format-bytes.ts";
import { Button } from "../shared/button.tsx";
import type { ShownGraph } from "./shown-graph.ts";
import type { ShownNode } from "./shown-part.ts";

export function NodeDetails({ shown }: { readonly shown: ShownGraph }) {
  const { nodes, weights } = shown.drawn.part;
  const node = nodes[shown.selected.value ?? -1];
  if (node === undefined) {
    return <p class="node-details dim">Select a node in the graph or in the list.</p>;
  }
  return (
    <section class="node-details" aria-label="Selected node" tabIndex={0}>
      <h3>{node.opType}</h3>
      <p class="mono cut-anywhere">{node.name}</p>
      <DifferenceLine shown={shown} />
      <Subgraphs {...{ shown, node }} />
      <ValueList title="Inputs" {...{ shown }} values={node.takes.map(describeTaken)} />
      <ValueList title="Outputs" {...{ shown }} values={node.gives} />
      <Attributes node={node} />
      <NodeWeights {...{ node }} weights={node.weights.flatMap((each) => weights[each] ?? [])} />
    </section>
  );
}

/** What the compression did to the selected node, and the way to the other graph. */
function DifferenceLine({ shown }: { readonly shown: ShownGraph }) {
  const { side, hasResult } = shown.drawn;
  if (!hasResult) return undefined;
  const change = shown.changes[shown.selected.value ?? -1];
  const other = side === "original" ? "result" : "original";
  return (
    <p>
      {change === undefined ? (
        <span class="dim">The compression left the node as it was.</span>
      ) : (
        <>
          <ChangeSign how={change.how} />
          {change.what.length > 0 && `, ${describeNodeChange(change)}`}
        </>
      )}{" "}
      <Button look="quiet" onClick={() => shown.turn()}>
        Show it in the {other}
      </Button>
    </p>
  );
}

interface NodePartProps {
  readonly shown: ShownGraph;
  readonly node: ShownNode;
}

function Subgraphs({ shown, node: { subgraphs } }: NodePartProps) {
  return subgraphs.map(({ name, nodes }, index) => (
    <p key={name}>
      <Button onClick={() => shown.enter(index)}>
        Open {name} · {nodes.toLocaleString("en")} {nodes === 1 ? "node" : "nodes"}
      </Button>
    </p>
  ));
}

function describeTaken({ value, from }: ShownNode["takes"][number]) {
  return from === undefined ? { value, to: [], isConstant: true } : { value, to: [from] };
}

interface ListedValue {
  readonly value: number;
  /** Drawn nodes at its other end. */
  readonly to: readonly number[];
  readonly isConstant?: boolean;
}

interface ValueListProps {
  readonly shown: ShownGraph;
  readonly title: string;
  readonly values: readonly ListedValue[];
}

/** More of them are counted. */
const shownLinks = 6;

/** Values at a node's edges, with the nodes that they come from or lead to. */
function ValueList({ shown, title, values }: ValueListProps) {
  if (values.length === 0) return undefined;
  return (
    <>
      <h4>{title}</h4>
      <ul class="node-values">
        {values.map(({ value, to, isConstant }, index) => {
          const { name = "", type = null } = shown.drawn.part.values[value] ?? {};
          return (
            <li key={index}>
              <span class="mono cut-anywhere">{name}</span>
              <span class="dim">
                {isConstant && "constant, "}
                {type ?? "type unknown"}
              </span>
              <NodeLinks shown={shown} positions={to} />
            </li>
          );
        })}
      </ul>
    </>
  );
}

function NodeLinks({ shown, positions }: { shown: ShownGraph; positions: readonly number[] }) {
  const { nodes } = shown.drawn.part;
  return (
    <span>
      {positions.slice(0, shownLinks).map((position) => (
        <button
          key={position}
          type="button"
          class="quiet small"
          title={nodes[position]?.name}
          onClick={() => (shown.selected.value = position)}
        >
          {nodes[position]?.opType}
        </button>
      ))}
      {positions.length > shownLinks && `and ${positions.length - shownLinks} more`}
    </span>
  );
}

function Attributes({ node: { attributes } }: Pick<NodePartProps, "node">) {
  if (attributes.length === 0) return undefined;
  return (
    <>
      <h4>Attributes</h4>
      <dl class="pairs">
        {attributes.map(({ name, value }) => [
          <dt key={name} class="cut-anywhere">
            {name}
          </dt>,
          <dd key={`${name} value`} class="mono cut-anywhere">
            {value}
          </dd>,
        ])}
      </dl>
    </>
  );
}

interface NodeWeightsProps extends Pick<NodePartProps, "node"> {
  readonly weights: readonly ModelGraphWeight[];
}

/** The largest first. */
function NodeWeights({ node, weights }: NodeWeightsProps) {
  if (weights.length === 0) {
    return node.kind === "node" && <p class="dim">This node has no weights.</p>;
  }
  const largestFirst = weights.toSorted((a, b) => b.originalBytes - a.originalBytes);
  return (
    <>
      <h4>Weights</h4>
      {largestFirst.map((weight) => (
        <WeightFacts key={weight.name} weight={weight} />
      ))}
    </>
  );
}

function WeightFacts({ weight }: { readonly weight: ModelGraphWeight }) {
  const { name, form, reason, originalBytes, resultBytes, sqnrDb } = weight;
  return (
    <dl class="pairs">
      <dt>Weight</dt>
      <dd class="mono cut-anywhere">{name}</dd>
      <dt>Stored as</dt>
      <dd>{form ?? "unchanged"}</dd>
      {reason !== null && <dt>Reason</dt>}
      {reason !== null && <dd>{reason}</dd>}
      <dt>Size</dt>
      <dd>
        {formatBytes(originalBytes)}
        {form !== null && ` to ${formatBytes(resultBytes)}`}
      </dd>
      {sqnrDb !== null && <dt>Error</dt>}
      {sqnrDb !== null && <dd>{sqnrDb.toFixed(1)} dB</dd>}
    </dl>
  );
}

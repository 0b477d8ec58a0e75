import "./changes.css";
import type { Signal } from "@preact/signals";
import type { Job } from "../../contract/jobs/job.ts";
import type { NodeChange } from "../../contract/jobs/model-diff.ts";
import { graphAddress } from "../shared/addresses.ts";
import { Icon, type IconName } from "../shared/button.tsx";

const signs = {
  added: { icon: "plus", tone: "good" },
  removed: { icon: "close", tone: "bad" },
  changed: { icon: "again", tone: "warn" },
} as const satisfies Record<NodeChange["how"], { icon: IconName; tone: string }>;

export function ChangeSign({ how }: Pick<NodeChange, "how">) {
  const { icon, tone } = signs[how];
  return (
    <span class={`change-sign ${tone}`}>
      <Icon name={icon} /> {how}
    </span>
  );
}

interface ChangedNameProps {
  readonly job: Job;
  readonly of: "model" | "result";
  readonly change: Pick<NodeChange, "how" | "name">;
}

/** The name of a node or weight, which leads to the job's graph if that is of a model with it. */
export function ChangedName({ job: { id }, of, change: { how, name } }: ChangedNameProps) {
  const isInGraph = how !== (of === "model" ? "removed" : "added");
  if (!isInGraph) return <span class="mono">{name}</span>;
  return (
    <a class="mono" href={graphAddress(id, name)}>
      {name}
    </a>
  );
}

interface FindChangesProps {
  readonly what: "nodes" | "weights";
  /** What is searched. */
  readonly placeholder: string;
  readonly wanted: Signal<string>;
  readonly found: number;
}

export function FindChanges({ what, placeholder, wanted, found }: FindChangesProps) {
  return (
    <div class="card-tools">
      <input
        type="search"
        aria-label={`Find changed ${what}`}
        placeholder={placeholder}
        onInput={({ currentTarget }) => (wanted.value = currentTarget.value)}
      />
      <span class="dim" role="status">
        {found} found
      </span>
    </div>
  );
}

/** Rows that are drawn at once. */
export const mostRows = 100;

/** Says how many of the changes are drawn, where it is not all. */
export function RestNote({ found }: { readonly found: number }) {
  if (found <= mostRows) return undefined;
  return (
    <p class="card-note">
      The first {mostRows} of {found}: search to see others.
    </p>
  );
}

import type { Signal } from "@preact/signals";
import type { NodeChange } from "../../contract/jobs/model-diff.ts";
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

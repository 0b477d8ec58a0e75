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

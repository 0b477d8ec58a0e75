import type { BatchStatus, JobStatus } from "../../contract/jobs/status.ts";
import { Icon, type IconName } from "./icon.tsx";

interface StatusLook {
  readonly icon: IconName;
  /** `calm`: nobody has to do anything. */
  readonly tone: "wait" | "work" | "calm" | "bad" | "off";
}

const looks: Readonly<Record<JobStatus | BatchStatus, StatusLook>> = {
  Pending: { icon: "wait", tone: "wait" },
  Sharding: { icon: "work", tone: "work" },
  Optimizing: { icon: "work", tone: "work" },
  Running: { icon: "work", tone: "work" },
  Completed: { icon: "good", tone: "calm" },
  Failed: { icon: "bad", tone: "bad" },
  Cancelling: { icon: "work", tone: "off" },
  Cancelled: { icon: "stop", tone: "off" },
};

/** A status: a shape and a word, the colour comes last. */
export function Status({ status }: { readonly status: JobStatus | BatchStatus }) {
  const { icon, tone } = looks[status];
  return (
    <span class={`status ${tone}`}>
      <Icon name={icon} />
      <span>{status}</span>
    </span>
  );
}

import { signal } from "@preact/signals";
import { watchChanges } from "./service-changes.ts";
import { isTerminal } from "../../contract/jobs/status.ts";
import { batchAddress, jobAddress } from "../../contract/page-addresses.ts";
import { judgeJob, sayBatchEnd } from "../shared/verdict.ts";

/** Ids of the jobs and batches whose end this tab is to say. */
export const followed = signal<ReadonlySet<string>>(new Set());

let isWatching = false;

/** Has the browser say when a job or batch ends, once a person allows it. @returns whether it may */
export async function followEnd(id: string): Promise<boolean> {
  if ((await Notification.requestPermission()) !== "granted") return false;
  followed.value = new Set([...followed.value, id]);
  if (!isWatching) watchChanges(sayEnds);
  isWatching = true;
  return true;
}

export function unfollowEnd(id: string): void {
  followed.value = new Set([...followed.value].filter((each) => each !== id));
}

const sayEnds: Parameters<typeof watchChanges>[0] = ({ job, batch }) => {
  if (job !== undefined && isTerminal(job.status)) {
    sayEnd(job, judgeJob(job).words, jobAddress(job.id));
  }
  if (batch !== undefined && isTerminal(batch.status)) {
    sayEnd(batch, sayBatchEnd(batch), batchAddress(batch.id));
  }
};

function sayEnd({ id, name }: { id: string; name: string }, body: string, address: string): void {
  if (!followed.peek().has(id)) return;
  unfollowEnd(id);
  const notice = new Notification(name, { body, tag: id });
  notice.addEventListener("click", () => {
    window.focus();
    location.assign(address);
  });
}

import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { z } from "zod";
import { formatBytes } from "../../contract/text/format-bytes.ts";
import type { usage } from "../../contract/people/usage.ts";
import { mayDo } from "../session/session.ts";
import { service } from "../session/service.ts";

const refreshMs = 10_000;

const present = signal<z.infer<typeof usage> | undefined>(undefined);

/** How busy the service is, in three lines. */
export function UsageSummary() {
  useEffect(() => {
    if (!mayDo("readUsage")) return undefined;
    void refresh();
    const timer = setInterval(() => void refresh(), refreshMs);
    return () => clearInterval(timer);
  }, []);
  if (present.value === undefined) return undefined;
  const { waitingJobs, runningJobs, storedBytes } = present.value;
  return (
    <dl class="usage">
      <UsageLine label="Running" value={String(runningJobs.used)} />
      <UsageLine label="Waiting" value={String(waitingJobs.used)} />
      <UsageLine label="Stored" value={formatBytes(storedBytes.used)} />
    </dl>
  );
}

function UsageLine({ label, value }: { readonly label: string; readonly value: string }) {
  return (
    <div>
      <dt>{label}</dt>
      <dd>{value}</dd>
    </div>
  );
}

/** What cannot be asked now is asked again soon; the sign of the live changes says the rest. */
async function refresh(): Promise<void> {
  if (document.hidden) return;
  present.value = await service.call("getUsage", {}).catch(() => present.value);
}

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { isId } from "../../contract/id.ts";
import type { JobSummary } from "../../contract/jobs/job-summary.ts";
import { service } from "../session/service.ts";
import { jobAddress } from "../shared/addresses.ts";
import { serviceNow } from "../shared/clock.ts";
import { formatAge } from "../shared/format-time.ts";
import type { Command } from "./match-commands.ts";

/** Newest jobs among which names are looked for. */
const recentJobs = "100";
/** After the last key, milliseconds. */
const pauseMs = 200;

type JobQuery = { readonly model?: string };

/** Jobs as commands: the newest ones, those whose model is the text, and the one whose id it is. */
export function useFoundJobs(text: string): readonly Command[] {
  const recent = useSignal<readonly Command[]>([]);
  const named = useSignal<readonly Command[]>([]);
  useEffect(() => void listJobCommands({}).then((jobs) => (recent.value = jobs)), []);
  useEffect(() => {
    if (text === "") return undefined;
    const stop = new AbortController();
    const timer = setTimeout(() => {
      void listJobCommands({ model: text }).then((jobs) => {
        if (!stop.signal.aborted) named.value = jobs;
      });
    }, pauseMs);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [text]);
  const byId = new Map([...recent.value, ...named.value].map((each) => [each.id, each]));
  return [...openById(text), ...byId.values()];
}

/** None where they cannot be listed: pages and actions are found all the same. */
async function listJobCommands(query: JobQuery): Promise<Command[]> {
  const options = { ...query, view: "summary" as const, limit: recentJobs };
  const page = await service.call("listJobs", { query: options }).catch(() => undefined);
  return (page?.jobs ?? []).flatMap((job) => ("figures" in job ? [toJobCommand(job)] : []));
}

function toJobCommand({ id, name, status, scheme, createdAt }: JobSummary): Command {
  const age = formatAge(Date.parse(createdAt), serviceNow.peek());
  const detail = `${status} · ${scheme} · ${age} · ${id}`;
  return { id, kind: "Job", label: name, detail, leadsTo: jobAddress(id) };
}

const openedById = [
  { prefix: "job", kind: "Job", folder: "/jobs" },
  { prefix: "batch", kind: "Batch", folder: "/batches" },
] as const;

function openById(text: string): Command[] {
  return openedById
    .filter(({ prefix }) => isId(prefix, text))
    .map(({ kind, folder }) => {
      return { id: "by-id", kind, label: text, detail: "", leadsTo: `${folder}/${text}` };
    });
}

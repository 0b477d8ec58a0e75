import { useSignal } from "@preact/signals";
import { useLocation } from "preact-iso";
import { useEffect, useId, useMemo, useRef } from "preact/hooks";
import "./commands.css";
import { type Command, matchCommands } from "./match-commands.ts";
import { isId } from "../../contract/id.ts";
import type { JobSummary } from "../../contract/jobs/job-summary.ts";
import { jobAddress } from "../../contract/page-addresses.ts";
import type { Action } from "../../contract/people/permissions.ts";
import { useLive } from "../live/use-live.ts";
import { service } from "../session/service.ts";
import { mayDo, signOut } from "../session/session.ts";
import { serviceNow } from "../shared/clock.ts";
import { Dialog, openDialog } from "../shared/dialog.tsx";
import { mayLeave } from "../shared/leave-question.ts";
import { formatAge } from "../shared/format.ts";
import { pageSections } from "../shell/sidebar.tsx";
import { chooseTheme } from "../shell/theme.ts";

/** Finds a page, a job or an action by its name, from the keyboard. */
export function CommandPalette({ onClose }: { readonly onClose: () => void }) {
  const text = useSignal("");
  const active = useSignal(0);
  const listId = useId();
  const { path, route } = useLocation();
  const commands = useMemo(() => listCommands(path), [path]);
  const jobs = useFoundJobs(text.value.trim());
  const found = matchCommands([...commands, ...jobs], text.value);
  const run = ({ leadsTo }: Command) => {
    onClose();
    if (typeof leadsTo !== "string") leadsTo();
    else if (mayLeave()) route(leadsTo);
  };
  const press = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const chosen = found[active.value];
    if (step !== undefined) {
      active.value = (active.value + step + found.length) % Math.max(1, found.length);
    } else if (event.key === "Enter" && chosen !== undefined) run(chosen);
    else return;
    event.preventDefault();
  };
  const type = (typed: string) => {
    text.value = typed;
    active.value = 0;
  };
  return (
    <Dialog title="Commands" look="palette" onClose={onClose}>
      <CommandInput listId={listId} active={active.value} onInput={type} onKeyDown={press} />
      <ul id={listId} role="listbox" aria-label="Commands">
        {found.map((command, index) => (
          <CommandOption
            key={command.id}
            id={`${listId}-${index}`}
            command={command}
            isActive={index === active.value}
            onClick={() => run(command)}
          />
        ))}
      </ul>
      {found.length === 0 && <p class="card-note">No match</p>}
    </Dialog>
  );
}

interface CommandInputProps {
  readonly listId: string;
  readonly active: number;
  readonly onInput: (text: string) => void;
  readonly onKeyDown: (event: KeyboardEvent) => void;
}

function CommandInput({ listId, active, onInput, onKeyDown }: CommandInputProps) {
  return (
    <input
      role="combobox"
      aria-label="Find a page, a job or an action"
      aria-expanded="true"
      aria-controls={listId}
      aria-activedescendant={`${listId}-${active}`}
      aria-autocomplete="list"
      placeholder="Page, job, job id or action"
      autocomplete="off"
      spellcheck={false}
      onInput={({ currentTarget }) => onInput(currentTarget.value)}
      onKeyDown={onKeyDown}
    />
  );
}

interface CommandOptionProps {
  readonly id: string;
  readonly command: Command;
  readonly isActive: boolean;
  readonly onClick: () => void;
}

function CommandOption({ id, command, isActive, onClick }: CommandOptionProps) {
  const option = useRef<HTMLLIElement>(null);
  useEffect(() => {
    if (isActive) option.current?.scrollIntoView({ block: "nearest" });
  }, [isActive]);
  const { label, detail, kind } = command;
  return (
    <li ref={option} id={id} role="option" aria-selected={isActive} onClick={onClick}>
      <b class="cut">{label}</b>
      <span class="dim cut grow">{detail}</span>
      <span class="tag">{kind}</span>
    </li>
  );
}

interface OfferedAction extends Pick<Command, "label" | "detail" | "leadsTo"> {
  /** Required to use the command. */
  readonly action?: Action;
}

const actions: readonly OfferedAction[] = [
  { label: "New job", detail: "compress a model", leadsTo: "/new", action: "startWork" },
  { label: "Failed jobs", detail: "", leadsTo: "/jobs?status=Failed", action: "readWork" },
  {
    label: "Running jobs",
    detail: "",
    leadsTo: "/jobs?status=Sharding&status=Optimizing&status=Cancelling",
    action: "readWork",
  },
  { label: "Light colours", detail: "theme", leadsTo: () => chooseTheme("light") },
  { label: "Dark colours", detail: "theme", leadsTo: () => chooseTheme("dark") },
  { label: "System colours", detail: "theme", leadsTo: () => chooseTheme("system") },
  { label: "Account", detail: "sessions, projects", leadsTo: "/account" },
  { label: "Terms", detail: "what the words mean", leadsTo: "/terms" },
  { label: "Keyboard help", detail: "?", leadsTo: () => (openDialog.value = "keys") },
  { label: "Sign out", detail: "", leadsTo: () => void signOut("signOut") },
];

/** Pages and actions that the person may use, those of the job at a path first. */
function listCommands(path: string): Command[] {
  const pages = Object.values(pageSections)
    .flat()
    .filter(({ action }) => mayDo(action))
    .map((page): Command => {
      return { id: page.path, kind: "Page", label: page.label, detail: "", leadsTo: page.path };
    });
  const offered = [...listJobActions(path), ...actions].filter(
    ({ action }) => action === undefined || mayDo(action),
  );
  return [...pages, ...offered.map(toCommand)];
}

function toCommand({ label, detail, leadsTo }: OfferedAction): Command {
  return { id: `action ${label}`, kind: "Action", label, detail, leadsTo };
}

function listJobActions(path: string): OfferedAction[] {
  const id = /^\/jobs\/(?<id>job-\w+)$/.exec(path)?.groups?.["id"];
  if (id === undefined) return [];
  return [
    {
      label: "Run this job with changes",
      detail: "",
      leadsTo: `/new?from=${id}`,
      action: "startWork",
    },
    { label: "Show the graph of this job", detail: "", leadsTo: () => (location.hash = "graph") },
  ];
}

/** Newest jobs among which names are looked for. */
const recentJobs = "100";
/** After the last key, milliseconds. */
const pauseMs = 200;

type JobQuery = { readonly model?: string };

/** Jobs as commands: the newest ones, those whose model is the text, and the one whose id it is. */
function useFoundJobs(text: string): readonly Command[] {
  const { value: recent = [] } = useLive(() => listJobCommands({}));
  const named = useSignal<readonly Command[]>([]);
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
  const byId = new Map([...recent, ...named.value].map((each) => [each.id, each]));
  return [...openById(text), ...byId.values()];
}

/** Empty if jobs cannot be listed: pages and actions are found all the same. */
async function listJobCommands(query: JobQuery): Promise<Command[]> {
  const listing = service.call("listJobSummaries", { query: { ...query, limit: recentJobs } });
  const page = await listing.catch(() => undefined);
  return (page?.jobs ?? []).map(toJobCommand);
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

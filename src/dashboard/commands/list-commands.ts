import type { Action } from "../../contract/people/permissions.ts";
import { mayDo, signOut } from "../session/session.ts";
import { pageSections } from "../shell/sidebar.tsx";
import { chooseTheme } from "../shell/theme.ts";
import type { Command } from "./match-commands.ts";
import { openDialog } from "../shared/open-dialog.ts";

interface OfferedAction extends Pick<Command, "label" | "detail" | "leadsTo"> {
  /** Without it the person has no use for the command. */
  readonly action?: Action;
}

const actions: readonly OfferedAction[] = [
  { label: "New job", detail: "compress a model", leadsTo: "/new", action: "startWork" },
  { label: "Failed jobs", detail: "", leadsTo: "/jobs?status=Failed", action: "readWork" },
  {
    label: "Jobs at work",
    detail: "running",
    leadsTo: "/jobs?status=Sharding&status=Optimizing&status=Cancelling",
    action: "readWork",
  },
  { label: "Light colours", detail: "theme", leadsTo: () => chooseTheme("light") },
  { label: "Dark colours", detail: "theme", leadsTo: () => chooseTheme("dark") },
  { label: "Colours of the system", detail: "theme", leadsTo: () => chooseTheme("system") },
  { label: "Account", detail: "passkeys, sessions", leadsTo: "/account" },
  { label: "Keyboard help", detail: "?", leadsTo: () => (openDialog.value = "keys") },
  { label: "Sign out", detail: "", leadsTo: () => void signOut("signOut") },
];

/** Pages and actions that the person may use, those of the job at a path first. */
export function listCommands(path: string): Command[] {
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
    { label: "Graph of this job", detail: "", leadsTo: () => (location.hash = "graph") },
  ];
}

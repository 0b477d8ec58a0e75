import { useLocation } from "preact-iso";
import { openDialog } from "../shared/open-dialog.ts";
import { mayDo, signOut } from "../session/session.ts";
import { self } from "../session/session-state.ts";
import { Icon, type IconName } from "../shared/icon.tsx";
import type { Action } from "../../contract/people/permissions.ts";
import { ProjectChoice } from "./project-choice.tsx";
import { ThemeButton } from "./theme-button.tsx";
import { UsageSummary } from "./usage-summary.tsx";

interface PageLink {
  readonly path: string;
  readonly icon: IconName;
  readonly label: string;
  /** Without it the person has no use for the page. */
  readonly action: Action;
}

/** The pages, by their sections. */
export const pageSections: Readonly<Record<string, readonly PageLink[]>> = {
  Work: [
    { path: "/jobs", icon: "jobs", label: "Jobs", action: "readWork" },
    { path: "/batches", icon: "batches", label: "Batches", action: "readWork" },
    { path: "/suites", icon: "suites", label: "Suites", action: "readWork" },
    { path: "/targets", icon: "targets", label: "Targets", action: "listTargets" },
  ],
  Access: [
    { path: "/tokens", icon: "tokens", label: "Tokens", action: "manageTokens" },
    { path: "/project", icon: "person", label: "Project", action: "readUsage" },
    { path: "/audit", icon: "audit", label: "Audit", action: "readAudit" },
  ],
  Service: [{ path: "/health", icon: "health", label: "Health and usage", action: "readUsage" }],
};

export function Sidebar() {
  return (
    <aside class="side">
      <a class="brand" href="/jobs" aria-label="Model Optimization">
        <span class="brand-sign">
          <Icon name="batches" />
        </span>
        <span class="brand-name">Model Optimization</span>
      </a>
      <button type="button" class="find" onClick={() => (openDialog.value = "commands")}>
        <Icon name="search" />
        <span>Find</span>
        <kbd>Ctrl K</kbd>
      </button>
      {Object.entries(pageSections).map(([title, links]) => (
        <PageLinks key={title} title={title} links={links} />
      ))}
      <footer>
        <UsageSummary />
        <Person />
      </footer>
    </aside>
  );
}

function PageLinks({ title, links }: { readonly title: string; links: readonly PageLink[] }) {
  const { path } = useLocation();
  return (
    <nav aria-label={title}>
      <h2>{title}</h2>
      {links
        .filter(({ action }) => mayDo(action))
        .map((link) => (
          <a
            key={link.path}
            href={link.path}
            aria-current={path.startsWith(link.path) ? "page" : undefined}
          >
            <Icon name={link.icon} />
            <span>{link.label}</span>
          </a>
        ))}
    </nav>
  );
}

function Person() {
  const { name, project } = self.value ?? {};
  return (
    <details class="person">
      <summary>
        <Icon name="person" />
        <span>{name}</span>
        <span class="dim">{project}</span>
      </summary>
      <ProjectChoice />
      <a class="button quiet" href="/account">
        Account
      </a>
      <button type="button" class="quiet" onClick={() => (openDialog.value = "keys")}>
        Keyboard help
      </button>
      <ThemeButton />
      <button type="button" class="quiet" onClick={() => void signOut("signOut")}>
        Sign out
      </button>
      <button type="button" class="quiet" onClick={() => void signOut("signOutEverywhere")}>
        Sign out everywhere
      </button>
    </details>
  );
}

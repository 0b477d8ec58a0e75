import { useLocation } from "preact-iso";
import { ProjectChoice } from "./project-choice.tsx";
import { chooseTheme, theme, themes } from "./theme.ts";
import type { Action } from "../../contract/people/permissions.ts";
import { formatBytes } from "../../contract/text/format-bytes.ts";
import { useUsage } from "../live/use-usage.ts";
import { self } from "../session/session-state.ts";
import { mayDo, signOut } from "../session/session.ts";
import { Icon, type IconName } from "../shared/button.tsx";
import { openDialog } from "../shared/dialog.tsx";
import { Menu } from "../shared/menu.tsx";

interface PageLink {
  readonly path: string;
  readonly icon: IconName;
  readonly label: string;
  /** Required to use the page. */
  readonly action: Action;
}

/** The pages, by their sections. */
export const pageSections: Readonly<Record<string, readonly PageLink[]>> = {
  Work: [
    { path: "/jobs", icon: "jobs", label: "Jobs", action: "readWork" },
    { path: "/batches", icon: "batches", label: "Batches", action: "readWork" },
    { path: "/models", icon: "models", label: "Models", action: "readWork" },
    { path: "/suites", icon: "suites", label: "Suites", action: "readWork" },
    { path: "/targets", icon: "targets", label: "Targets", action: "listTargets" },
  ],
  Access: [
    { path: "/tokens", icon: "tokens", label: "Tokens", action: "manageTokens" },
    { path: "/webhooks", icon: "webhooks", label: "Webhooks", action: "manageWebhooks" },
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
        {mayDo("readUsage") && <UsageSummary />}
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
  const summary = (
    <>
      <Icon name="person" />
      <span>{name}</span>
      <span class="dim">{project}</span>
    </>
  );
  return (
    <Menu look="person" summary={summary}>
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
    </Menu>
  );
}

/** Goes on to the next choice of colours. */
function ThemeButton() {
  const current = theme.value;
  const next = themes[(themes.indexOf(current) + 1) % themes.length] ?? "system";
  return (
    <button type="button" class="quiet" onClick={() => chooseTheme(next)}>
      Colours: {current}
    </button>
  );
}

/** How busy the service is, in three lines. */
function UsageSummary() {
  const { value } = useUsage();
  if (value === undefined) return undefined;
  const { waitingJobs, runningJobs, storedBytes } = value;
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

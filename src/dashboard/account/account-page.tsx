import { roleTable } from "../../contract/people/role.ts";
import { administratorId } from "../../contract/people/person.ts";
import type { Self, Session } from "../../contract/people/session.ts";
import { service } from "../session/service.ts";
import { self } from "../session/session-state.ts";
import { signOut } from "../session/session.ts";
import { Button } from "../shared/button.tsx";
import { Loading, MaybeError } from "../shared/notice.tsx";
import { Age, PageHead } from "../shared/page-head.tsx";
import { useLive } from "../live/use-live.ts";

/** The person who is signed in: where else, and in which projects. */
export function AccountPage() {
  return (
    <main id="main">
      <PageHead title="Account" sign={<span class="dim">{self.value?.name}</span>} />
      <div class="sheet">
        <SessionCard />
        <MembershipCard />
      </div>
    </main>
  );
}

function MembershipCard() {
  const { projects = [], personId } = self.value ?? {};
  return (
    <section class="card c4" aria-labelledby="memberships">
      <header>
        <h2 id="memberships">Projects</h2>
      </header>
      <dl class="pairs">
        {projects.map((membership) => (
          <MembershipPair key={membership.name} {...membership} />
        ))}
        {personId !== administratorId && (
          <div class="pair">
            <dt>Your id</dt>
            <dd class="mono">{personId}</dd>
          </div>
        )}
      </dl>
    </section>
  );
}

function MembershipPair({ name, role }: Self["projects"][number]) {
  return (
    <div class="pair">
      <dt>{name}</dt>
      <dd title={roleTable[role].does}>{role}</dd>
    </div>
  );
}

function SessionCard() {
  const { value: sessions, error, reload } = useLive(loadSessions);
  return (
    <section class="card c4" aria-labelledby="sessions">
      <SessionHead />
      <MaybeError error={error} retry={reload} />
      {sessions === undefined && error === undefined && <Loading />}
      <ul class="list">
        {sessions?.map((session) => (
          <SessionLine key={session.id} session={session} />
        ))}
      </ul>
    </section>
  );
}

function SessionHead() {
  return (
    <header>
      <h2 id="sessions">Signed in</h2>
      <span class="grow" />
      <Button look="quiet danger" onClick={() => signOut("signOutEverywhere")}>
        Sign out everywhere
      </Button>
    </header>
  );
}

async function loadSessions(): Promise<readonly Session[]> {
  return (await service.call("listSessions", {})).sessions;
}

const methodNames = {
  link: "with a link",
  "single-sign-on": "with single sign-on",
} as const satisfies Record<Session["method"], string>;

function SessionLine({ session }: { readonly session: Session }) {
  const { id, browser, method, createdAt } = session;
  return (
    <li class="two">
      <span>{id === self.value?.sessionId ? <b>This browser</b> : browser || "Unknown"}</span>
      <small class="soft">
        {methodNames[method]}, <Age at={createdAt} />
      </small>
    </li>
  );
}

import type { Session } from "../../contract/people/session.ts";
import { service } from "../session/service.ts";
import { signOut } from "../session/session.ts";
import { self } from "../session/session-state.ts";
import { Button } from "../shared/button.tsx";
import { Loading } from "../shared/loading.tsx";
import { MaybeError } from "../shared/notice.tsx";
import { Age } from "../shared/time.tsx";
import { useLoaded } from "../shared/use-loaded.ts";

/** Where the person is signed in. */
export function SessionCard() {
  const { value: sessions, error, reload } = useLoaded(loadSessions);
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
        Sign out of all
      </Button>
    </header>
  );
}

async function loadSessions(): Promise<readonly Session[]> {
  return (await service.call("listSessions", {})).sessions;
}

const methodNames = {
  link: "by a link",
  passkey: "by a passkey",
  "single-sign-on": "by single sign-on",
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

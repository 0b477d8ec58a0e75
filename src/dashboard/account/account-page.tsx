import { useSignal } from "@preact/signals";
import { PasskeyList } from "./passkey-list.tsx";
import { type Passkey, passkeyName } from "../../contract/people/passkey.ts";
import { roleTable } from "../../contract/people/role.ts";
import type { Self, Session } from "../../contract/people/session.ts";
import { createPasskey } from "../session/passkeys.ts";
import { service } from "../session/service.ts";
import { self } from "../session/session-state.ts";
import { signOut } from "../session/session.ts";
import { Button, Icon } from "../shared/button.tsx";
import { Dialog, DialogFormEnd } from "../shared/dialog.tsx";
import { TextField } from "../shared/field.tsx";
import { Loading, MaybeError } from "../shared/notice.tsx";
import { Age, PageHead } from "../shared/page-head.tsx";
import { useLoaded } from "../shared/use-loaded.ts";

/** The person who is signed in: passkeys, where else, and in which projects. */
export function AccountPage() {
  return (
    <main id="main">
      <PageHead title="Account" sign={<span class="dim">{self.value?.name}</span>} />
      <div class="sheet">
        <PasskeyCard />
        <SessionCard />
        <MembershipCard />
      </div>
    </main>
  );
}

/** What the person may do, and where. */
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
        <div class="pair">
          <dt>Your id</dt>
          <dd class="mono">{personId}</dd>
        </div>
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

interface PasskeyNameDialogProps {
  /** The one to rename; null where a new one is registered. */
  readonly passkey: Passkey | null;
  readonly onClose: () => void;
}

/** Asks for the name of a passkey. */
function PasskeyNameDialog({ passkey, onClose }: PasskeyNameDialogProps) {
  const name = useSignal(passkey?.name ?? "");
  const invalid = useSignal<string | undefined>(undefined);
  const failure = useSignal<unknown>(undefined);
  const submit = (event: Event) => {
    event.preventDefault();
    const { success, data } = passkeyName.safeParse(name.value);
    invalid.value = success ? undefined : "Use 1 to 100 characters";
    if (success) savePasskeyName(passkey, data).then(onClose, (error) => (failure.value = error));
  };
  return (
    <Dialog title={passkey ? "Rename the passkey" : "Add a passkey"} onClose={onClose}>
      <form onSubmit={submit} noValidate>
        <MaybeError error={failure.value} />
        <TextField
          label="Name"
          hint="Such as that of the device"
          error={invalid.value}
          text={name}
        />
        <DialogFormEnd action={passkey ? "Rename" : "Continue"} onCancel={onClose} />
      </form>
    </Dialog>
  );
}

async function savePasskeyName(passkey: Passkey | null, name: string): Promise<void> {
  if (passkey === null) await createPasskey(name);
  else await service.call("renamePasskey", { params: { id: passkey.id }, body: { name } });
}

/** Passkeys of the person: registered here, renamed and deleted. */
function PasskeyCard() {
  const { value: passkeys, error, reload } = useLoaded(loadPasskeys);
  /** The passkey to name; null for a new one. */
  const named = useSignal<Passkey | null | undefined>(undefined);
  const failure = useSignal<unknown>(undefined);
  const close = () => {
    named.value = undefined;
    void reload();
  };
  const remove = (passkey: Passkey) =>
    forgetPasskey(passkey).then(reload, (thrown) => (failure.value = thrown));
  return (
    <section class="card c4" aria-labelledby="passkeys">
      <PasskeyHead onAdd={() => (named.value = null)} />
      <MaybeError error={error ?? failure.value} retry={reload} />
      {passkeys === undefined && error === undefined && <Loading />}
      <PasskeyList
        passkeys={passkeys}
        onRename={(passkey) => (named.value = passkey)}
        onRemove={remove}
      />
      {named.value !== undefined && <PasskeyNameDialog passkey={named.value} onClose={close} />}
    </section>
  );
}

async function loadPasskeys(): Promise<readonly Passkey[]> {
  return (await service.call("listPasskeys", {})).passkeys;
}

function forgetPasskey({ id }: Passkey): Promise<void> {
  return service.callEmpty("deletePasskey", { params: { id } });
}

function PasskeyHead({ onAdd }: { readonly onAdd: () => void }) {
  return (
    <header>
      <h2 id="passkeys">Passkeys</h2>
      <span class="grow" />
      <Button onClick={onAdd}>
        <Icon name="plus" />
        Add a passkey
      </Button>
    </header>
  );
}

/** Where the person is signed in. */
function SessionCard() {
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

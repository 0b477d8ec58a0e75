import { useSignal } from "@preact/signals";
import type { Member } from "../../contract/people/member.ts";
import type { Role } from "../../contract/people/role.ts";
import { loadSelf } from "../session/session.ts";
import { self } from "../session/session-state.ts";
import { service } from "../session/service.ts";
import { Button } from "../shared/button.tsx";
import { Icon } from "../shared/icon.tsx";
import { Loading } from "../shared/loading.tsx";
import { MaybeError } from "../shared/notice.tsx";
import { useLoaded } from "../shared/use-loaded.ts";
import { AddMemberDialog } from "./add-member-dialog.tsx";
import { MemberTable } from "./member-table.tsx";
import { RemoveMemberDialog } from "./remove-member-dialog.tsx";

/** Who has which role in the project: added, changed and removed here. */
export function MemberCard({ project }: { readonly project: string }) {
  const { value: members, error, reload } = useLoaded(() => loadMembers(project));
  const chosen = useSignal<Member | null | undefined>(undefined);
  const failure = useSignal<unknown>(undefined);
  const close = () => {
    chosen.value = undefined;
    void reload();
  };
  const change = async (member: Member, role: Role) => {
    failure.value = undefined;
    await changeRole(project, member, role).catch((thrown: unknown) => (failure.value = thrown));
    await reload();
  };
  return (
    <section class="card c12" aria-labelledby="members">
      <MemberHead onAdd={() => (chosen.value = null)} />
      <MaybeError error={error ?? failure.value} retry={reload} />
      {members === undefined && error === undefined && <Loading />}
      <MemberTable
        members={members}
        onChange={change}
        onRemove={(member) => (chosen.value = member)}
      />
      <MemberDialog chosen={chosen.value} project={project} onClose={close} />
    </section>
  );
}

interface MemberDialogProps {
  /** Whom to remove; null for somebody to add. */
  readonly chosen: Member | null | undefined;
  readonly project: string;
  readonly onClose: () => void;
}

function MemberDialog({ chosen, ...dialog }: MemberDialogProps) {
  if (chosen === undefined) return undefined;
  if (chosen === null) return <AddMemberDialog {...dialog} />;
  return <RemoveMemberDialog member={chosen} {...dialog} />;
}

function MemberHead({ onAdd }: { readonly onAdd: () => void }) {
  return (
    <header>
      <h2 id="members">Members</h2>
      <span class="grow" />
      <Button onClick={onAdd}>
        <Icon name="plus" />
        Add a member
      </Button>
    </header>
  );
}

async function loadMembers(project: string): Promise<readonly Member[]> {
  return (await service.call("listMembers", { params: { project } })).members;
}

async function changeRole(project: string, { member }: Member, role: Role): Promise<void> {
  await service.call("putMember", { params: { project, member }, body: { role } });
  // What the page offers follows from the own role.
  if (member === self.value?.personId) await loadSelf();
}

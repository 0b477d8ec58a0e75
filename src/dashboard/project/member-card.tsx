import { useSignal } from "@preact/signals";
import { AddMemberDialog, RoleChoice } from "./add-member-dialog.tsx";
import { groupPrefix, type Member } from "../../contract/people/member.ts";
import type { Role } from "../../contract/people/role.ts";
import { service } from "../session/service.ts";
import { self } from "../session/session-state.ts";
import { loadSelf } from "../session/session.ts";
import { Button, Icon } from "../shared/button.tsx";
import { RemovalDialog } from "../shared/dialog.tsx";
import { Loading, MaybeError } from "../shared/notice.tsx";
import { Age } from "../shared/page-head.tsx";
import { TableHead } from "../shared/table-head.tsx";
import { useLive } from "../live/use-live.ts";

/** Who has which role in the project: added, changed and removed here. */
export function MemberCard({ project }: { readonly project: string }) {
  const { value: members, error, reload } = useLive(() => loadMembers(project));
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
      <MaybeError error={error} retry={reload} />
      <MaybeError error={failure.value} />
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

interface MemberActions {
  readonly onChange: (member: Member, role: Role) => unknown;
  readonly onRemove: (member: Member) => unknown;
}

interface MemberTableProps extends MemberActions {
  /** Undefined until they are loaded. */
  readonly members: readonly Member[] | undefined;
}

const columns = { Member: "", Role: "", Added: "phone-off" };

/** Members of the project, or what to do if there are none. */
function MemberTable({ members, ...actions }: MemberTableProps) {
  if (members === undefined) return undefined;
  if (members.length === 0) return <NoMembers />;
  return (
    <table class="members">
      <caption class="sr">Members and their roles</caption>
      <TableHead columns={columns}>
        <th>
          <span class="sr">Actions</span>
        </th>
      </TableHead>
      <tbody>
        {members.map((member) => (
          <MemberRow key={member.member} member={member} {...actions} />
        ))}
      </tbody>
    </table>
  );
}

function NoMembers() {
  return (
    <p class="card-text soft padded">
      Only administrators of the installation have access to this project.
    </p>
  );
}

function MemberCell({ member }: { readonly member: Member }) {
  return (
    <td class="two cut-anywhere">
      <b>{memberTitle(member)}</b>
      {member.member === self.value?.personId && <span class="dim"> (you)</span>}
      <small>{memberDetail(member)}</small>
    </td>
  );
}

interface RoleCellProps extends Pick<MemberActions, "onChange"> {
  readonly member: Member;
}

function RoleCell({ member, onChange }: RoleCellProps) {
  return (
    <td>
      <RoleChoice
        label={`Role of ${memberTitle(member)}`}
        role={member.role}
        onChoose={(role) => onChange(member, role)}
      />
    </td>
  );
}

function MemberRow({ member, onChange, onRemove }: MemberActions & { readonly member: Member }) {
  return (
    <tr>
      <MemberCell member={member} />
      <RoleCell member={member} onChange={onChange} />
      <td class="soft phone-off">
        <Age at={member.createdAt} />
      </td>
      <td class="num">
        <Button look="quiet danger" onClick={() => onRemove(member)}>
          Remove<span class="sr"> {memberTitle(member)}</span>
        </Button>
      </td>
    </tr>
  );
}

interface RemoveMemberDialogProps {
  readonly project: string;
  readonly member: Member;
  readonly onClose: () => void;
}

const ownRemoval = "You lose your own role in this project, and cannot give it back to yourself.";
const removal = "Sessions, tokens and streams lose the role within five seconds.";

function RemoveMemberDialog({ project, member, onClose }: RemoveMemberDialogProps) {
  const isSelf = member.member === self.value?.personId;
  const remove = async () => {
    await service.callEmpty("removeMember", { params: { project, member: member.member } });
    if (isSelf) await loadSelf();
    else onClose();
  };
  return (
    <RemovalDialog
      title={`Remove ${memberTitle(member)} from ${project}?`}
      keep="Keep"
      remove="Remove"
      onKeep={onClose}
      onRemove={remove}
    >
      <p>{isSelf ? ownRemoval : removal}</p>
      <p class="soft">Roles from other groups remain.</p>
    </RemovalDialog>
  );
}

function memberTitle({ member, person }: Member): string {
  return person?.name ?? member.slice(groupPrefix.length);
}

/** What distinguishes a member from others of the same name. */
function memberDetail({ member, person, issuer }: Member): string {
  if (person === null) return `Group of ${new URL(issuer ?? "").host}`;
  return [person.email, member].filter((each) => each !== null).join(" · ");
}

import type { Member } from "../../contract/people/member.ts";
import type { Role } from "../../contract/people/role.ts";
import { self } from "../session/session-state.ts";
import { Button } from "../shared/button.tsx";
import { Age } from "../shared/time.tsx";
import { memberDetail, memberTitle } from "./member-name.ts";
import { RoleChoice } from "./role-choice.tsx";

interface MemberActions {
  readonly onChange: (member: Member, role: Role) => unknown;
  readonly onRemove: (member: Member) => unknown;
}

interface MemberTableProps extends MemberActions {
  /** Undefined until they are loaded. */
  readonly members: readonly Member[] | undefined;
}

/** Members of the project, or what to do where there are none. */
export function MemberTable({ members, ...actions }: MemberTableProps) {
  if (members === undefined) return undefined;
  if (members.length === 0) return <NoMembers />;
  return (
    <table class="members">
      <caption class="sr">Members and their roles</caption>
      <MemberTableHead />
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
      Nobody has a role in this project but administrators of the installation.
    </p>
  );
}

function MemberTableHead() {
  return (
    <thead>
      <tr>
        <th>Member</th>
        <th>Role</th>
        <th class="phone-off">Added</th>
        <th>
          <span class="sr">Actions</span>
        </th>
      </tr>
    </thead>
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

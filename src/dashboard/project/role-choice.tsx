import { type Role, role as roleSchema } from "../../contract/people/role.ts";

interface RoleChoiceProps {
  readonly role: Role;
  readonly onChoose: (role: Role) => unknown;
  /** For screen readers, where no label leads to it. */
  readonly label?: string;
  readonly id?: string;
  /** Of the text that says more. */
  readonly describedBy?: string;
}

export function RoleChoice({ role, onChoose, label, id, describedBy }: RoleChoiceProps) {
  return (
    <select
      id={id}
      aria-label={label}
      aria-describedby={describedBy}
      value={role}
      onChange={({ currentTarget }) => onChoose(roleSchema.parse(currentTarget.value))}
    >
      {roleSchema.options.map((each) => (
        <option key={each}>{each}</option>
      ))}
    </select>
  );
}

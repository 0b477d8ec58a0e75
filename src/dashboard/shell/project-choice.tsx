import { chooseProject } from "../session/session.ts";
import { self } from "../session/session-state.ts";
import { Field } from "../shared/field.tsx";

/** Leads to another project, where the person has more than one. */
export function ProjectChoice() {
  const { project = "", projects = [] } = self.value ?? {};
  const names = projects.map(({ name }) => name);
  const others = names.filter((name) => name !== project);
  if (others.length === 0) return undefined;
  return (
    <Field label="Project">
      {({ id }) => (
        <select
          id={id}
          value={project}
          onChange={({ currentTarget }) => void chooseProject(currentTarget.value)}
        >
          {[project, ...others].map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      )}
    </Field>
  );
}

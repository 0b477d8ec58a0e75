import type { Self } from "../../contract/people/session.ts";
import { signOut } from "../session/session.ts";
import { self } from "../session/session-state.ts";
import { Command } from "../shared/command.tsx";
import { ProjectChoice } from "../shell/project-choice.tsx";
import { Brand } from "./brand.tsx";

/** Whether a person is signed in who may do nothing in the project. */
export function hasNoRole({ sessionId, role }: Self): boolean {
  return sessionId !== null && role === null;
}

/** Says whom to ask, to somebody who is signed in without a role. */
export function NoRolePage() {
  const { name, project, personId } = self.value ?? {};
  return (
    <main class="gate" id="main">
      <div class="card gate-card">
        <Brand />
        <h1>No access yet</h1>
        <p>
          You are signed in as {name}, and have no role in the project {project}. Give your id to an
          administrator of the project, who can add you as a member:
        </p>
        <Command text={personId ?? ""} label="Your id" />
        <ProjectChoice />
        <button type="button" onClick={() => void signOut("signOut")}>
          Sign out
        </button>
      </div>
    </main>
  );
}

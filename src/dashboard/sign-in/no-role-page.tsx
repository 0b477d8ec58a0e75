import { useSignal } from "@preact/signals";
import { Brand } from "./brand.tsx";
import { OtherSignIns, SignInForm } from "./sign-in-page.tsx";
import type { Self } from "../../contract/people/session.ts";
import { self } from "../session/session-state.ts";
import { signIn, signOut } from "../session/session.ts";
import { Command } from "../shared/button.tsx";
import { Dialog } from "../shared/dialog.tsx";
import { ErrorNotice } from "../shared/notice.tsx";
import { ProjectChoice } from "../shell/project-choice.tsx";

/** Whether somebody is signed in without any permission in the project. */
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
          You are signed in as {name} and have no role in project {project}. Give your id to one of
          its administrators, who can add you as a member:
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

/** Asks to sign in again over the page, on which nothing that was typed is lost. */
export function SessionEnded() {
  const error = useSignal<unknown>(undefined);
  const use = (secret: string) => {
    signIn(secret).catch((thrown: unknown) => (error.value = thrown));
  };
  return (
    <Dialog title="Your session has ended" onClose={() => location.reload()}>
      <p class="soft">Sign in again to continue. What you typed is still here.</p>
      {error.value !== undefined && <ErrorNotice error={error.value} />}
      <OtherSignIns keepsPage />
      <SignInForm isBusy={false} onSecret={use} />
    </Dialog>
  );
}

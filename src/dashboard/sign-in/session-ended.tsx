import { useSignal } from "@preact/signals";
import { signIn } from "../session/session.ts";
import { self } from "../session/session-state.ts";
import { Dialog } from "../shared/dialog.tsx";
import { ErrorNotice } from "../shared/notice.tsx";
import { OtherSignIns } from "./other-sign-ins.tsx";
import { SignInForm } from "./sign-in-form.tsx";

/** Asks to sign in again over the page, on which nothing that was typed is lost. */
export function SessionEnded() {
  const error = useSignal<unknown>(undefined);
  const use = (secret: string) => {
    signIn(secret).catch((thrown: unknown) => (error.value = thrown));
  };
  return (
    <Dialog title="Your session has ended" onClose={() => (self.value = undefined)}>
      <p class="soft">Sign in again to go on. What you typed is still here.</p>
      {error.value !== undefined && <ErrorNotice error={error.value} />}
      <OtherSignIns keepsPage />
      <SignInForm isBusy={false} onSecret={use} />
    </Dialog>
  );
}

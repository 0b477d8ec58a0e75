import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { signIn } from "../session/session.ts";
import { ErrorNotice } from "../shared/notice.tsx";
import { findLinkSecret } from "./find-link-secret.ts";
import { Brand } from "./brand.tsx";
import { OtherSignIns } from "./other-sign-ins.tsx";
import { SignInForm } from "./sign-in-form.tsx";
import { SignInProblemNotice } from "./sign-in-problem-notice.tsx";

/** Signs in by the link that opened the page, or by one that is pasted. */
export function SignInPage() {
  const error = useSignal<unknown>(undefined);
  const isBusy = useSignal(false);
  const submitSecret = (secret: string) => {
    isBusy.value = true;
    signIn(secret)
      .catch((thrown: unknown) => (error.value = thrown))
      .finally(() => (isBusy.value = false));
  };
  useEffect(() => {
    const secret = takeLinkSecret();
    if (secret !== undefined) submitSecret(secret);
  }, []);
  return (
    <main class="gate" id="main">
      <div class="card gate-card">
        <Brand />
        <h1>Sign in</h1>
        {error.value !== undefined && <ErrorNotice error={error.value} />}
        <SignInProblemNotice />
        <OtherSignIns />
        <SignInForm isBusy={isBusy.value} onSecret={submitSecret} />
      </div>
    </main>
  );
}

/** The secret in the address, which is taken out of it and of the history. */
function takeLinkSecret(): string | undefined {
  const secret = findLinkSecret(location.hash);
  if (location.hash !== "") history.replaceState(undefined, "", location.pathname);
  return secret;
}

import { useSignal } from "@preact/signals";
import { signInByPasskey } from "../session/passkeys.ts";
import { service } from "../session/service.ts";
import { Button } from "../shared/button.tsx";
import { MaybeError } from "../shared/notice.tsx";
import { useLoaded } from "../shared/use-loaded.ts";

/** What the service offers besides a link. */
export function OtherSignIns() {
  const { value: methods } = useLoaded(() => service.call("getSignInMethods", {}));
  const failure = useSignal<unknown>(undefined);
  if (methods === undefined) return undefined;
  const usePasskey = () => signInByPasskey().catch((error: unknown) => (failure.value = error));
  return (
    <>
      <MaybeError error={failure.value} />
      <p class="buttons">
        {methods.singleSignOn !== null && <SingleSignOnLink host={methods.singleSignOn} />}
        {methods.passkeys && <Button onClick={usePasskey}>Sign in with a passkey</Button>}
      </p>
    </>
  );
}

function SingleSignOnLink({ host }: { readonly host: string }) {
  const { pathname, search } = location;
  const wanted = pathname === "/sign-in" ? "/" : pathname + search;
  return (
    <a class="button main" href={`/auth/sign-in?return=${encodeURIComponent(wanted)}`}>
      Sign in with {host}
    </a>
  );
}

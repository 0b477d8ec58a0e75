import { useSignal } from "@preact/signals";
import { signInByPasskey } from "../session/passkeys.ts";
import { service } from "../session/service.ts";
import { Button } from "../shared/button.tsx";
import { MaybeError } from "../shared/notice.tsx";
import { useLoaded } from "../shared/use-loaded.ts";

interface OtherSignInsProps {
  /** Whether the page stays, with what was typed on it: the issuer's opens in another tab. */
  readonly keepsPage?: boolean;
}

/** What the service offers besides a link. */
export function OtherSignIns({ keepsPage = false }: OtherSignInsProps) {
  const { value: methods } = useLoaded(() => service.call("getSignInMethods", {}));
  const failure = useSignal<unknown>(undefined);
  if (methods === undefined) return undefined;
  const usePasskey = () => signInByPasskey().catch((error: unknown) => (failure.value = error));
  return (
    <>
      <MaybeError error={failure.value} />
      <p class="buttons">
        {methods.singleSignOn !== null && (
          <SingleSignOnLink host={methods.singleSignOn} target={keepsPage ? "_blank" : undefined} />
        )}
        {methods.passkeys && <Button onClick={usePasskey}>Sign in with a passkey</Button>}
      </p>
    </>
  );
}

interface SingleSignOnLinkProps {
  readonly host: string;
  readonly target: string | undefined;
}

function SingleSignOnLink({ host, target }: SingleSignOnLinkProps) {
  const { pathname, search } = location;
  const wanted = pathname === "/sign-in" ? "/" : pathname + search;
  return (
    <a
      class="button main"
      target={target}
      href={`/auth/sign-in?return=${encodeURIComponent(wanted)}`}
    >
      Sign in with {host}
    </a>
  );
}

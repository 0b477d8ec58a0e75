import { service } from "../session/service.ts";
import { useLoaded } from "../shared/use-loaded.ts";

/** What the service offers besides a link. */
export function OtherSignIns() {
  const { value: methods } = useLoaded(() => service.call("getSignInMethods", {}));
  if (methods === undefined || methods.singleSignOn === null) return undefined;
  const { pathname, search } = location;
  const wanted = pathname === "/sign-in" ? "/" : pathname + search;
  return (
    <p>
      <a class="button main" href={`/auth/sign-in?return=${encodeURIComponent(wanted)}`}>
        Sign in with {methods.singleSignOn}
      </a>
    </p>
  );
}

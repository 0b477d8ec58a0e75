import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { Brand } from "./brand.tsx";
import { type SignInProblem, signInProblems } from "../../contract/people/sign-in-problems.ts";
import { service } from "../session/service.ts";
import { signIn } from "../session/session.ts";
import { Command } from "../shared/button.tsx";
import { TextField } from "../shared/field.tsx";
import { ErrorNotice } from "../shared/notice.tsx";
import { useLive } from "../live/use-live.ts";

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
    const take = () => {
      error.value = isCutLink(location) ? noLink : undefined;
      const secret = takeLinkSecret();
      if (secret !== undefined) submitSecret(secret);
    };
    take();
    // A link that is pasted where this page is shown does not load the page again.
    addEventListener("hashchange", take);
    return () => removeEventListener("hashchange", take);
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

const noLink = "This is not a sign-in link: one ends in # and 43 characters";

/** Whether an address is one of a sign-in link that somebody copied in part. */
function isCutLink({ pathname, hash }: Location): boolean {
  return pathname === "/sign-in" && hash !== "" && findLinkSecret(hash) === undefined;
}

/** The secret in the address, which is taken out of it and of the history. */
function takeLinkSecret(): string | undefined {
  const secret = findLinkSecret(location.hash);
  if (location.hash !== "") history.replaceState(undefined, "", location.pathname);
  return secret;
}

/** Why the single sign-on signed nobody in, which leads to this page then. */
function SignInProblemNotice() {
  const problem = new URLSearchParams(location.search).get("problem");
  if (problem === null || !isProblem(problem)) return undefined;
  return <ErrorNotice error={new Error(signInProblems[problem])} />;
}

function isProblem(text: string): text is SignInProblem {
  return Object.hasOwn(signInProblems, text);
}

interface SignInFormProps {
  readonly isBusy: boolean;
  readonly onSecret: (secret: string) => void;
}

/** Takes a sign-in link, and says where one comes from. */
export function SignInForm({ isBusy, onSecret }: SignInFormProps) {
  const text = useSignal("");
  const error = useSignal<string | undefined>(undefined);
  const submit = (event: Event) => {
    event.preventDefault();
    const secret = findLinkSecret(text.value);
    error.value = secret === undefined ? noLink : undefined;
    if (secret !== undefined) onSecret(secret);
  };
  return (
    <form onSubmit={submit} noValidate>
      <TextField
        label="Sign-in link"
        hint="It works once, within an hour."
        error={error.value}
        text={text}
        placeholder={`${location.origin}/sign-in#…`}
      />
      <button class="main" disabled={isBusy}>
        {isBusy ? "Signing in…" : "Sign in"}
      </button>
      <LinkCommands />
    </form>
  );
}

const localCommand = "npm run sign-in";
const clusterCommand =
  "kubectl exec deployment/model-optimization-service -- node src/service/main.ts sign-in";

function LinkCommands() {
  return (
    <div class="hints">
      <p class="soft">Create a link where the service runs:</p>
      <Command text={localCommand} label="Command on this machine" />
      <p class="soft">or in a cluster:</p>
      <Command text={clusterCommand} label="Command in a cluster" />
    </div>
  );
}

interface OtherSignInsProps {
  /** Whether the page stays, with what was typed on it: the issuer's opens in another tab. */
  readonly keepsPage?: boolean;
}

/** What the service offers besides a link. */
export function OtherSignIns({ keepsPage = false }: OtherSignInsProps) {
  const { value: methods } = useLive(() => service.call("getSignInMethods", {}));
  if (methods === undefined || methods.singleSignOn === null) return undefined;
  return (
    <p class="buttons">
      <SingleSignOnLink host={methods.singleSignOn} target={keepsPage ? "_blank" : undefined} />
    </p>
  );
}

function SingleSignOnLink({ host, target }: { host: string; target: string | undefined }) {
  const { pathname, search, hash } = location;
  const wanted = pathname === "/sign-in" ? "/" : pathname + search + hash;
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

const secretForm = /^[\w-]{43}$/;

/** The secret of a sign-in link, or of what was pasted of one; undefined where it has none. */
function findLinkSecret(text: string): string | undefined {
  const secret = text.trim().split("#").at(-1) ?? "";
  return secretForm.test(secret) ? secret : undefined;
}

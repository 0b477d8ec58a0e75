import { useSignal } from "@preact/signals";
import { Command } from "../shared/command.tsx";
import { TextField } from "../shared/text-field.tsx";
import { findLinkSecret } from "./find-link-secret.ts";

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
    error.value =
      secret === undefined ? "This is no sign-in link: it ends in # and 43 characters" : undefined;
    if (secret !== undefined) onSecret(secret);
  };
  return (
    <form onSubmit={submit} noValidate>
      <TextField
        label="Sign-in link"
        hint="It signs in once, and within an hour."
        error={error.value}
        text={text}
        placeholder="http://localhost:8080/sign-in#…"
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
      <p class="soft">Make a link where the service runs:</p>
      <Command text={localCommand} label="Command on this machine" />
      <p class="soft">or in a cluster:</p>
      <Command text={clusterCommand} label="Command in a cluster" />
    </div>
  );
}

import { useSignal } from "@preact/signals";
import { type Passkey, passkeyName } from "../../contract/people/passkey.ts";
import { createPasskey } from "../session/passkeys.ts";
import { service } from "../session/service.ts";
import { Dialog, DialogFormEnd } from "../shared/dialog.tsx";
import { MaybeError } from "../shared/notice.tsx";
import { TextField } from "../shared/text-field.tsx";

interface PasskeyNameDialogProps {
  /** The one to rename; null where a new one is registered. */
  readonly passkey: Passkey | null;
  readonly onClose: () => void;
}

/** Asks for the name of a passkey. */
export function PasskeyNameDialog({ passkey, onClose }: PasskeyNameDialogProps) {
  const name = useSignal(passkey?.name ?? "");
  const invalid = useSignal<string | undefined>(undefined);
  const failure = useSignal<unknown>(undefined);
  const submit = (event: Event) => {
    event.preventDefault();
    const { success, data } = passkeyName.safeParse(name.value);
    invalid.value = success ? undefined : "Use 1 to 100 characters";
    if (success) savePasskeyName(passkey, data).then(onClose, (error) => (failure.value = error));
  };
  return (
    <Dialog title={passkey ? "Rename the passkey" : "Add a passkey"} onClose={onClose}>
      <form onSubmit={submit} noValidate>
        <MaybeError error={failure.value} />
        <TextField
          label="Name"
          hint="Such as that of the device"
          error={invalid.value}
          text={name}
        />
        <DialogFormEnd action={passkey ? "Rename" : "Continue"} onCancel={onClose} />
      </form>
    </Dialog>
  );
}

async function savePasskeyName(passkey: Passkey | null, name: string): Promise<void> {
  if (passkey === null) await createPasskey(name);
  else await service.call("renamePasskey", { params: { id: passkey.id }, body: { name } });
}

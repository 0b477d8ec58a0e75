import { useSignal } from "@preact/signals";
import type { Passkey } from "../../contract/people/passkey.ts";
import { service } from "../session/service.ts";
import { Button } from "../shared/button.tsx";
import { Icon } from "../shared/icon.tsx";
import { Loading } from "../shared/loading.tsx";
import { MaybeError } from "../shared/notice.tsx";
import { useLoaded } from "../shared/use-loaded.ts";
import { PasskeyList } from "./passkey-list.tsx";
import { PasskeyNameDialog } from "./passkey-name-dialog.tsx";

/** Passkeys of the person: registered here, renamed and deleted. */
export function PasskeyCard() {
  const { value: passkeys, error, reload } = useLoaded(loadPasskeys);
  /** The passkey to name; null for a new one. */
  const named = useSignal<Passkey | null | undefined>(undefined);
  const failure = useSignal<unknown>(undefined);
  const close = () => {
    named.value = undefined;
    void reload();
  };
  const remove = (passkey: Passkey) =>
    forgetPasskey(passkey).then(reload, (thrown) => (failure.value = thrown));
  return (
    <section class="card c4" aria-labelledby="passkeys">
      <PasskeyHead onAdd={() => (named.value = null)} />
      <MaybeError error={error ?? failure.value} retry={reload} />
      {passkeys === undefined && error === undefined && <Loading />}
      <PasskeyList
        passkeys={passkeys}
        onRename={(passkey) => (named.value = passkey)}
        onRemove={remove}
      />
      {named.value !== undefined && <PasskeyNameDialog passkey={named.value} onClose={close} />}
    </section>
  );
}

async function loadPasskeys(): Promise<readonly Passkey[]> {
  return (await service.call("listPasskeys", {})).passkeys;
}

function forgetPasskey({ id }: Passkey): Promise<void> {
  return service.callEmpty("deletePasskey", { params: { id } });
}

function PasskeyHead({ onAdd }: { readonly onAdd: () => void }) {
  return (
    <header>
      <h2 id="passkeys">Passkeys</h2>
      <span class="grow" />
      <Button onClick={onAdd}>
        <Icon name="plus" />
        Add a passkey
      </Button>
    </header>
  );
}

import type { Passkey } from "../../contract/people/passkey.ts";
import { Button } from "../shared/button.tsx";
import { Age } from "../shared/page-head.tsx";

interface PasskeyActions {
  readonly onRename: (passkey: Passkey) => unknown;
  readonly onRemove: (passkey: Passkey) => unknown;
}

interface PasskeyListProps extends PasskeyActions {
  /** Undefined until they are loaded. */
  readonly passkeys: readonly Passkey[] | undefined;
}

export function PasskeyList({ passkeys, ...actions }: PasskeyListProps) {
  if (passkeys === undefined) return undefined;
  if (passkeys.length === 0) {
    return (
      <p class="card-text soft padded">
        With a passkey you sign in by your fingerprint, face or a security key, without a link.
      </p>
    );
  }
  return (
    <ul class="list">
      {passkeys.map((passkey) => (
        <PasskeyLine key={passkey.id} passkey={passkey} {...actions} />
      ))}
    </ul>
  );
}

function PasskeyLine({
  passkey,
  onRename,
  onRemove,
}: PasskeyActions & { readonly passkey: Passkey }) {
  const hidden = <span class="sr"> {passkey.name}</span>;
  return (
    <li>
      <PasskeyFacts {...passkey} />
      <span class="grow" />
      <Button look="quiet" onClick={() => onRename(passkey)}>
        Rename{hidden}
      </Button>
      <Button look="quiet danger" onClick={() => onRemove(passkey)}>
        Delete{hidden}
      </Button>
    </li>
  );
}

function PasskeyFacts({ name, lastUsedAt }: Passkey) {
  const use = lastUsedAt === null ? "never used" : <Age at={lastUsedAt} />;
  return (
    <span class="two">
      <b>{name}</b>
      <small class="soft">
        {lastUsedAt !== null && "used "}
        {use}
      </small>
    </span>
  );
}

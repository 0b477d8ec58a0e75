import { useSignal } from "@preact/signals";
import type { Token } from "../../contract/token.ts";
import { service } from "../session/service.ts";
import { Dialog } from "../shared/dialog.tsx";
import { ErrorNotice } from "../shared/notice.tsx";
import { Age } from "../shared/time.tsx";

interface RevokeTokenDialogProps {
  readonly token: Token;
  readonly onClose: () => void;
}

export function RevokeTokenDialog({ token, onClose }: RevokeTokenDialogProps) {
  const failure = useSignal<unknown>(undefined);
  const revoke = () => {
    service
      .callEmpty("revokeToken", { params: { id: token.id } })
      .then(onClose)
      .catch((error: unknown) => (failure.value = error));
  };
  return (
    <Dialog title={`Revoke “${token.name}”?`} onClose={onClose}>
      {failure.value !== undefined && <ErrorNotice error={failure.value} />}
      <p>Whoever uses it is refused from now on, within five seconds everywhere.</p>
      <p class="soft">
        {token.lastUsedAt === null ? "It was never used." : <LastUse at={token.lastUsedAt} />}
      </p>
      <div class="dialog-end">
        <button type="button" onClick={onClose}>
          Keep it
        </button>
        <button type="button" class="main danger" onClick={revoke}>
          Revoke token
        </button>
      </div>
    </Dialog>
  );
}

function LastUse({ at }: { readonly at: string }) {
  return (
    <>
      It was last used <Age at={at} />.
    </>
  );
}

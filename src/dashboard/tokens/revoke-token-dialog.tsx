import { useSignal } from "@preact/signals";
import type { Token } from "../../contract/people/token.ts";
import { service } from "../session/service.ts";
import { Dialog, DialogRemovalEnd } from "../shared/dialog.tsx";
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
      <p>Requests with it are refused from now on, within five seconds everywhere.</p>
      <LastUse at={token.lastUsedAt} />
      <DialogRemovalEnd keep="Keep it" onKeep={onClose} remove="Revoke token" onRemove={revoke} />
    </Dialog>
  );
}

function LastUse({ at }: { readonly at: string | null }) {
  if (at === null) return <p class="soft">It was never used.</p>;
  return (
    <p class="soft">
      It was last used <Age at={at} />.
    </p>
  );
}

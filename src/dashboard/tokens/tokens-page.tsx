import { useSignal } from "@preact/signals";
import { CreateTokenDialog } from "./create-token-dialog.tsx";
import { TokenTable } from "./token-table.tsx";
import type { CreatedToken, Token } from "../../contract/people/token.ts";
import { interfaceUrl, service } from "../session/service.ts";
import { Button, Command, Icon } from "../shared/button.tsx";
import { Dialog, DialogDoneEnd, RemovalDialog } from "../shared/dialog.tsx";
import { MaybeError } from "../shared/notice.tsx";
import { Age, PageHead } from "../shared/page-head.tsx";
import { useLive } from "../live/use-live.ts";

type Step =
  | { readonly name: "create" }
  | { readonly name: "shown"; readonly token: CreatedToken }
  | { readonly name: "revoke"; readonly token: Token };

/** Access tokens of the project: made here, shown once, replaced and revoked. */
export function TokensPage() {
  const { value: tokens, error, reload } = useLive(loadTokens);
  const step = useSignal<Step | undefined>(undefined);
  const failure = useSignal<unknown>(undefined);
  const show = (token: CreatedToken) => (step.value = { name: "shown", token });
  const close = () => {
    step.value = undefined;
    void reload();
  };
  const actions = {
    onRotate: ({ id }: Token) => {
      failure.value = undefined;
      return service
        .call("rotateToken", { params: { id } })
        .then(show, (thrown) => (failure.value = thrown));
    },
    onRevoke: (token: Token) => (step.value = { name: "revoke", token }),
  };
  return (
    <main id="main">
      <TokensHead onCreate={() => (step.value = { name: "create" })} />
      <MaybeError error={error} retry={reload} />
      <MaybeError error={failure.value} />
      {tokens !== undefined && <TokenTable tokens={tokens} {...actions} />}
      <TokenStep step={step.value} onCreated={show} onClose={close} />
    </main>
  );
}

function TokensHead({ onCreate }: { readonly onCreate: () => void }) {
  return (
    <PageHead title="Tokens">
      <Button look="main" onClick={onCreate}>
        <Icon name="plus" />
        New token
      </Button>
    </PageHead>
  );
}

interface TokenStepProps {
  readonly step: Step | undefined;
  readonly onCreated: (token: CreatedToken) => void;
  readonly onClose: () => void;
}

function TokenStep({ step, onCreated, onClose }: TokenStepProps) {
  switch (step?.name) {
    case undefined:
      return undefined;
    case "create":
      return <CreateTokenDialog onCreated={onCreated} onClose={onClose} />;
    case "shown":
      return <ShownToken token={step.token} onClose={onClose} />;
    case "revoke":
      return <RevokeTokenDialog token={step.token} onClose={onClose} />;
  }
}

async function loadTokens(): Promise<readonly Token[]> {
  return (await service.call("listTokens", {})).tokens;
}

/** A token that was just made: the service does not have it, so that it is shown this once. */
function ShownToken({ token, onClose }: { token: CreatedToken; onClose: () => void }) {
  return (
    <Dialog title={`Token “${token.name}”`} onClose={onClose}>
      <p>Copy it now. The service keeps only its hash and cannot show it again.</p>
      <Command text={token.token} label="Access token" />
      <p class="soft">Try it:</p>
      <Command text={tokenCommand(token, interfaceUrl)} label="curl command" />
      <DialogDoneEnd done="I have copied it" onDone={onClose} />
    </Dialog>
  );
}

interface RevokeTokenDialogProps {
  readonly token: Token;
  readonly onClose: () => void;
}

function RevokeTokenDialog({ token, onClose }: RevokeTokenDialogProps) {
  const revoke = async () => {
    await service.callEmpty("revokeToken", { params: { id: token.id } });
    onClose();
  };
  return (
    <RemovalDialog
      title={`Revoke “${token.name}”?`}
      keep="Keep token"
      remove="Revoke token"
      onKeep={onClose}
      onRemove={revoke}
    >
      <p>Requests with this token are refused everywhere within five seconds.</p>
      <LastUse at={token.lastUsedAt} />
    </RemovalDialog>
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

/** A curl line that works at once with a token. */
function tokenCommand({ token }: Pick<CreatedToken, "token">, address: string): string {
  return `curl --fail-with-body -H "Authorization: Bearer ${token}" ${address}/tokens/self`;
}

import { useSignal } from "@preact/signals";
import type { CreatedToken, Token } from "../../contract/people/token.ts";
import { service } from "../session/service.ts";
import { Button } from "../shared/button.tsx";
import { Icon } from "../shared/icon.tsx";
import { MaybeError } from "../shared/notice.tsx";
import { PageHead } from "../shared/page-head.tsx";
import { useLoaded } from "../shared/use-loaded.ts";
import { CreateTokenDialog } from "./create-token-dialog.tsx";
import { RevokeTokenDialog } from "./revoke-token-dialog.tsx";
import { ShownToken } from "./shown-token.tsx";
import { TokenTable } from "./token-table.tsx";

type Step =
  | { readonly name: "create" }
  | { readonly name: "shown"; readonly token: CreatedToken }
  | { readonly name: "revoke"; readonly token: Token };

/** Access tokens of the project: made here, shown once, replaced and revoked. */
export function TokensPage() {
  const { value: tokens, error, reload } = useLoaded(loadTokens);
  const step = useSignal<Step | undefined>(undefined);
  const failure = useSignal<unknown>(undefined);
  const show = (token: CreatedToken) => (step.value = { name: "shown", token });
  const close = () => {
    step.value = undefined;
    void reload();
  };
  const actions = {
    onRotate: ({ id }: Token) =>
      service
        .call("rotateToken", { params: { id } })
        .then(show, (thrown) => (failure.value = thrown)),
    onRevoke: (token: Token) => (step.value = { name: "revoke", token }),
  };
  return (
    <main id="main">
      <TokensHead onCreate={() => (step.value = { name: "create" })} />
      <MaybeError error={error ?? failure.value} retry={reload} />
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

import type { Token } from "../../contract/people/token.ts";
import { Button, Icon } from "../shared/button.tsx";
import { serviceNow } from "../shared/clock.ts";
import { EmptyState } from "../shared/notice.tsx";
import { Age } from "../shared/page-head.tsx";
import { TableHead } from "../shared/table-head.tsx";

interface TokenActions {
  readonly onRotate: (token: Token) => unknown;
  readonly onRevoke: (token: Token) => unknown;
}

const columns = {
  Name: "",
  Scopes: "phone-off",
  "Last used": "phone-off",
  Created: "phone-off",
  Expires: "",
};

export function TokenTable({ tokens, ...actions }: TokenActions & { tokens: readonly Token[] }) {
  if (tokens.length === 0) return <NoTokens />;
  return (
    <div class="card wide">
      <table class="tokens">
        <caption class="sr">Access tokens, newest first</caption>
        <TableHead columns={columns}>
          <th>
            <span class="sr">Actions</span>
          </th>
        </TableHead>
        <tbody>
          {tokens.map((token) => (
            <TokenRow key={token.id} token={token} {...actions} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function NoTokens() {
  return (
    <EmptyState title="No tokens yet">
      <p class="soft">Scripts, the GitHub Action and curl call the service with a token.</p>
    </EmptyState>
  );
}

function TokenRow({ token, ...actions }: TokenActions & { readonly token: Token }) {
  const state = describeTokenState(token, serviceNow.value);
  const isOver = state === "revoked" || state === "expired";
  return (
    <tr class={isOver ? "is-over" : undefined}>
      <td class="two cut-anywhere">
        <b>{token.name}</b>
        <small class="mono">{token.prefix}…</small>
      </td>
      <td class="phone-off">
        <Scopes scopes={token.scopes} />
      </td>
      <td class="soft phone-off">
        {token.lastUsedAt === null ? "never" : <Age at={token.lastUsedAt} />}
      </td>
      <td class="soft phone-off">
        <Age at={token.createdAt} />
      </td>
      <td>
        <TokenEnd token={token} state={state} />
      </td>
      <td class="num">{!isOver && <TokenButtons token={token} {...actions} />}</td>
    </tr>
  );
}

function Scopes({ scopes }: Pick<Token, "scopes">) {
  return (
    <span class="scopes">
      {scopes.map((scope) => (
        <code key={scope} class="tag">
          {scope}
        </code>
      ))}
    </span>
  );
}

function TokenEnd({ token, state }: { readonly token: Token; readonly state: TokenState }) {
  const { revokedAt, expiresAt } = token;
  if (revokedAt !== null) return <TokenSign tone="off" icon="stop" word="Revoked" at={revokedAt} />;
  if (expiresAt === null) return <span class="soft">never</span>;
  if (state === "expired") return <TokenSign tone="off" icon="stop" word="" at={expiresAt} />;
  if (state === "soon") return <TokenSign tone="warn" icon="warn" word="" at={expiresAt} />;
  return <Age at={expiresAt} />;
}

interface TokenSignProps {
  readonly tone: "off" | "warn";
  readonly icon: "stop" | "warn";
  readonly word: string;
  readonly at: string;
}

function TokenSign({ tone, icon, word, at }: TokenSignProps) {
  return (
    <span class={`status ${tone}`}>
      <Icon name={icon} />
      <span>
        {word} <Age at={at} />
      </span>
    </span>
  );
}

const rotationHint = "Creates a new token; this one stays valid for another day";

function TokenButtons({ token, onRotate, onRevoke }: TokenActions & { readonly token: Token }) {
  const hidden = <span class="sr"> {token.name}</span>;
  return (
    <span class="buttons">
      {token.policy === null && token.replacedBy === null && (
        <Button look="quiet" title={rotationHint} onClick={() => onRotate(token)}>
          Rotate{hidden}
        </Button>
      )}
      <Button look="quiet danger" onClick={() => onRevoke(token)}>
        Revoke{hidden}
      </Button>
    </span>
  );
}

type TokenState = "valid" | "soon" | "expired" | "revoked";

const soonMs = 7 * 86_400_000;

/** Whether a token can be used; `soon` for one that expires within a week. */
function describeTokenState({ revokedAt, expiresAt }: Token, now: number): TokenState {
  if (revokedAt !== null) return "revoked";
  if (expiresAt === null) return "valid";
  const left = Date.parse(expiresAt) - now;
  if (left <= 0) return "expired";
  return left < soonMs ? "soon" : "valid";
}

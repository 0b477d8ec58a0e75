import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import { Icon } from "./button.tsx";
import { ProblemError } from "../../client/problem-error.ts";
import { ConnectionError } from "../../client/transport.ts";
import { onReconnect } from "./connection-state.ts";

/** What went wrong, in words that say what to do. */
export function ErrorNotice({ error, retry }: { readonly error: unknown; retry?: () => void }) {
  return (
    <div class="notice bad" role="alert">
      <Icon name="bad" />
      <div>
        <p>{sayError(error)}</p>
        {error instanceof ProblemError && error.problem.requestId !== undefined && (
          <p class="dim">
            Request <span class="mono">{error.problem.requestId}</span>
          </p>
        )}
      </div>
      {retry && (
        <button type="button" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  );
}

/** An error, if there is one: one that the service was away is dropped once it is back. */
export function MaybeError({ error, retry }: { readonly error: unknown; retry?: () => unknown }) {
  const settled = useSignal<unknown>(undefined);
  useEffect(() => onReconnect(() => (settled.value = error)), [error]);
  if (error === undefined) return undefined;
  if (error instanceof ConnectionError && settled.value === error) return undefined;
  return retry ? (
    <ErrorNotice error={error} retry={() => void retry()} />
  ) : (
    <ErrorNotice error={error} />
  );
}

export function sayError(error: unknown): string {
  if (isRefusal(error)) return sayFields(error);
  if (error instanceof ProblemError) return error.problem.detail;
  return error instanceof Error ? error.message : String(error);
}

/** Whether the service takes no request with such fields, however often it is sent. */
export function isRefusal(error: unknown): error is ProblemError {
  return error instanceof ProblemError && error.problem.code === "validation_failed";
}

/** What is wrong with each field; the detail of the problem only names the first. */
function sayFields({ problem: { detail, errors = [] } }: ProblemError): string {
  const lines = errors.map(({ pointer, message }) => {
    const field = pointer.replace(/^(query)?\//, "").replace(/\/\d+$/, "");
    return field === "" ? message : `${field}: ${message}`;
  });
  return lines.join("; ") || detail;
}

/** A page or table without content, and what to do about it. */
export function EmptyState({
  title,
  children,
}: {
  readonly title: string;
  readonly children?: ComponentChildren;
}) {
  return (
    <div class="empty">
      <h2>{title}</h2>
      {children}
    </div>
  );
}

export function Loading() {
  return (
    <p class="card-text dim padded" role="status">
      Loading…
    </p>
  );
}

import type { Webhook } from "../../contract/deliveries/webhook.ts";
import { Button } from "../shared/button.tsx";
import { Age } from "../shared/page-head.tsx";
import { ToneSign } from "../shared/status.tsx";

interface WebhookCardProps {
  readonly webhook: Webhook;
  readonly onDeliveries: (webhook: Webhook) => unknown;
  readonly onEnable: (webhook: Webhook) => unknown;
  readonly onRotate: (webhook: Webhook) => unknown;
  readonly onDelete: (webhook: Webhook) => unknown;
}

export function WebhookCard({ webhook, ...actions }: WebhookCardProps) {
  const { url, events, description, createdAt, lastSuccessAt, disabledAt } = webhook;
  return (
    <section class="card c12" aria-label={url}>
      <header>
        <h2 class="mono cut-anywhere">{url}</h2>
        <WebhookState webhook={webhook} />
      </header>
      <p class="card-text">
        {description !== "" && <>{description} · </>}
        {events.map((event) => (
          <code key={event} class="tag">
            {event}
          </code>
        ))}{" "}
        <span class="soft">
          Created <Age at={createdAt} />,{" "}
          {lastSuccessAt === null ? (
            "never delivered"
          ) : (
            <>
              last delivered <Age at={lastSuccessAt} />
            </>
          )}
        </span>
      </p>
      <WebhookTroubles webhook={webhook} />
      <div class="card-text padded buttons">
        <Button onClick={() => actions.onDeliveries(webhook)}>Deliveries</Button>
        {disabledAt !== null && <Button onClick={() => actions.onEnable(webhook)}>Enable</Button>}
        <Button look="quiet" onClick={() => actions.onRotate(webhook)}>
          Replace secret
        </Button>
        <Button look="quiet danger" onClick={() => actions.onDelete(webhook)}>
          Delete
        </Button>
      </div>
    </section>
  );
}

function WebhookState({ webhook }: { readonly webhook: Webhook }) {
  const { disabledAt, waitingDeliveries, lastSuccessAt } = webhook;
  if (disabledAt !== null) return <ToneSign tone="bad" icon="bad" words="Disabled" />;
  if (waitingDeliveries === 0 && lastSuccessAt === null) {
    return <ToneSign tone="wait" icon="wait" words="Nothing sent yet" />;
  }
  if (waitingDeliveries === 0) return <ToneSign tone="calm" icon="good" words="All delivered" />;
  return <ToneSign tone="wait" icon="wait" words={`${waitingDeliveries} not delivered yet`} />;
}

function WebhookTroubles({ webhook }: { readonly webhook: Webhook }) {
  const { disabledReason, skippedEvents, lastSkippedAt } = webhook;
  return (
    <>
      {disabledReason !== null && <p class="card-text bad">{disabledReason}</p>}
      {skippedEvents > 0 && lastSkippedAt !== null && (
        <p class="card-text warn">
          {skippedEvents.toLocaleString("en")} events were skipped, the last{" "}
          <Age at={lastSkippedAt} />: ask for the jobs and batches that changed until then.
        </p>
      )}
    </>
  );
}

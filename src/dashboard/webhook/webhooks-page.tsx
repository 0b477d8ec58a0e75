import { useSignal } from "@preact/signals";
import { CreateWebhookDialog } from "./create-webhook-dialog.tsx";
import { DeliveryList } from "./delivery-list.tsx";
import { WebhookCard } from "./webhook-card.tsx";
import type { CreatedWebhook, Webhook } from "../../contract/deliveries/webhook.ts";
import { useLive } from "../live/use-live.ts";
import { service } from "../session/service.ts";
import { Button, Command, Icon } from "../shared/button.tsx";
import { Dialog, DialogDoneEnd, RemovalDialog } from "../shared/dialog.tsx";
import { EmptyState, Loading, MaybeError } from "../shared/notice.tsx";
import { PageHead } from "../shared/page-head.tsx";

type Step =
  | { readonly name: "create" }
  | { readonly name: "shown"; readonly webhook: CreatedWebhook }
  | { readonly name: "delete"; readonly webhook: Webhook }
  | { readonly name: "deliveries"; readonly webhook: Webhook };

/** Deliveries go on without a change of a job that the page could see. */
const everyMs = 10_000;

/** Where the project's events are sent, and whether they arrive. */
export function WebhooksPage() {
  const { value: webhooks, error, reload } = useLive(loadWebhooks, { everyMs });
  const step = useSignal<Step | undefined>(undefined);
  const failure = useSignal<unknown>(undefined);
  const close = () => {
    step.value = undefined;
    void reload();
  };
  const show = (webhook: CreatedWebhook) => (step.value = { name: "shown", webhook });
  const run = <T,>(work: Promise<T>, onDone: (answer: T) => unknown) => {
    failure.value = undefined;
    void work.then(onDone, (thrown: unknown) => (failure.value = thrown));
  };
  const actions = {
    onDeliveries: (webhook: Webhook) => (step.value = { name: "deliveries", webhook }),
    onDelete: (webhook: Webhook) => (step.value = { name: "delete", webhook }),
    onEnable: ({ id }: Webhook) => run(service.call("enableWebhook", { params: { id } }), reload),
    onRotate: ({ id }: Webhook) => run(service.call("rotateWebhook", { params: { id } }), show),
  };
  return (
    <main id="main">
      <PageHead title="Webhooks">
        <Button look="main" onClick={() => (step.value = { name: "create" })}>
          <Icon name="plus" />
          New webhook
        </Button>
      </PageHead>
      <MaybeError error={error} retry={reload} />
      <MaybeError error={failure.value} />
      {webhooks === undefined && error === undefined && <Loading />}
      {webhooks?.length === 0 && <NoWebhooks />}
      <div class="sheet">
        {webhooks?.map((webhook) => (
          <WebhookCard key={webhook.id} webhook={webhook} {...actions} />
        ))}
      </div>
      <WebhookStep step={step.value} onCreated={show} onClose={close} />
    </main>
  );
}

async function loadWebhooks(): Promise<readonly Webhook[]> {
  return (await service.call("listWebhooks", {})).webhooks;
}

function NoWebhooks() {
  return (
    <EmptyState title="No webhooks yet">
      <p class="soft">
        A webhook gets a signed message whenever a job or batch changes its status: for chats,
        dashboards and programs that would ask again and again otherwise.
      </p>
    </EmptyState>
  );
}

interface WebhookStepProps {
  readonly step: Step | undefined;
  readonly onCreated: (webhook: CreatedWebhook) => void;
  readonly onClose: () => void;
}

function WebhookStep({ step, onCreated, onClose }: WebhookStepProps) {
  switch (step?.name) {
    case undefined:
      return undefined;
    case "create":
      return <CreateWebhookDialog onCreated={onCreated} onClose={onClose} />;
    case "shown":
      return <ShownSecret webhook={step.webhook} onClose={onClose} />;
    case "deliveries":
      return <DeliveryList webhook={step.webhook} onClose={onClose} />;
    case "delete": {
      const { id, url } = step.webhook;
      const remove = async () => {
        await service.callEmpty("deleteWebhook", { params: { id } });
        onClose();
      };
      return (
        <RemovalDialog
          title="Delete this webhook?"
          keep="Keep webhook"
          remove="Delete webhook"
          onKeep={onClose}
          onRemove={remove}
        >
          <p class="cut-anywhere">
            Nothing is sent to <code>{url}</code> any more, and its deliveries are deleted.
          </p>
        </RemovalDialog>
      );
    }
  }
}

/** The key of the signatures, which is shown this once. */
function ShownSecret({ webhook, onClose }: { webhook: CreatedWebhook; onClose: () => void }) {
  return (
    <Dialog title="Secret of the webhook" onClose={onClose}>
      <p>
        Copy it now, it is not shown again. Whoever receives the messages checks their signatures
        with it, as Standard Webhooks describes.
      </p>
      <Command text={webhook.secret} label="Secret" />
      <DialogDoneEnd done="I have copied it" onDone={onClose} />
    </Dialog>
  );
}
